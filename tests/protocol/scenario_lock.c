/* The lock itself (base/lock.c) with one spin instead of a hundred: nobody is in it with another, and nobody sleeps
 * for ever. futex is the scheduler's. */
#include "base/lock.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stddef.h>

#include "scheduler.h"

long __wrap_syscall(long number, ...);

static struct lock lock = LOCK_INITIALIZER(LOCK_META);
static unsigned inside;

long __wrap_syscall(long number, ...)
{
    va_list args;
    (void)number;
    va_start(args, number);
    const uint32_t *word = va_arg(args, uint32_t *);
    int operation = va_arg(args, int) & ~FUTEX_PRIVATE_FLAG;
    uint32_t value = va_arg(args, uint32_t);
    va_end(args);
    if (operation == FUTEX_WAIT) {
        sched_step(OP_SLEEP, word, sizeof *word, 0, __builtin_return_address(0));
        if (*(const volatile uint32_t *)word == value)
            sched_step(OP_WAKEN, word, sizeof *word, 0, __builtin_return_address(0));
    } else {
        sched_step(OP_WAKE, word, sizeof *word, 0, __builtin_return_address(0));
    }
    return 0;
}

static void enter_once(void)
{
    lock_take(&lock);
    if (inside != 0)
        sched_violation("two threads have the lock");
    inside = 1;
    inside = 0;
    lock_drop(&lock);
}

static void enter_twice(void)
{
    enter_once();
    enter_once();
}

const struct protocol_scenario scenarios[] = {
    {"lock two threads", 0, 2, {0}, {enter_once, enter_once}, {0}},
    {"lock two threads twice", 0, 2, {0}, {enter_twice, enter_twice}, {0}, .partly = true},
    {"lock three threads", 0, 3, {0}, {enter_once, enter_once, enter_once}, {0}, .partly = true},
    {0},
};
