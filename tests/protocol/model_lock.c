/* base/lock.h by the scheduler: a thread that wants a lock has no step to take until the lock is free. The real one is
 * searched by itself (scenario_lock.c). */
#include "base/lock.h"

#include <stddef.h>

#include "base/thread.h"
#include "scheduler.h"

#define CALLER __builtin_return_address(0)

static uintptr_t passing;
static int passed;
/* By thread; the last: while nothing is scheduled. */
static uint32_t ranks_held[THREADS_MOST + 1];
static uint32_t heap_locks[THREADS_MOST + 1];

static size_t self(void)
{
    return sched_self() >= 0 ? (size_t)sched_self() : THREADS_MOST;
}

static uint32_t *ranks(void)
{
    return &ranks_held[self()];
}

static bool pass(int more)
{
    passed += lock_passes() ? more : 0;
    return lock_passes();
}

static void take(struct lock *lock, const void *caller)
{
    if (lock_is_mine(lock))
        sched_violation("a lock of rank %u is taken twice", lock->rank);
    sched_step(OP_LOCK, &lock->word, sizeof lock->word, 0, caller);
    if (lock->word != 0)
        sched_violation("a lock of rank %u is not free", lock->rank);
    lock->word = thread_self();
    *ranks() |= 1u << lock->rank;
    heap_locks[self()] += lock->rank == LOCK_HEAP ? 1 : 0;
}

void lock_take_sibling(struct lock *lock)
{
    if (pass(1))
        return;
    take(lock, CALLER);
}

void lock_take(struct lock *lock)
{
    if (pass(1))
        return;
    if (*ranks() >> lock->rank != 0)
        sched_violation("a lock of rank %u is taken after one of the same or a higher", lock->rank);
    take(lock, CALLER);
}

void lock_drop(struct lock *lock)
{
    if (pass(-1))
        return;
    if (!lock_is_mine(lock))
        sched_violation("a lock of rank %u is dropped by another thread", lock->rank);
    sched_step(OP_UNLOCK, &lock->word, sizeof lock->word, 0, CALLER);
    *ranks() &= ~(1u << lock->rank);
    heap_locks[self()] -= lock->rank == LOCK_HEAP ? 1 : 0;
    lock->word = 0;
}

bool lock_may_be_of_heap(void)
{
    return heap_locks[self()] != 0;
}

void lock_after_fork(void)
{
    for (size_t i = 0; i <= THREADS_MOST; i++)
        heap_locks[i] = 0;
}

bool lock_is_mine(const struct lock *lock)
{
    return lock->word == thread_self();
}

bool lock_is_taken(const struct lock *lock)
{
    sched_step(OP_READ, &lock->word, sizeof lock->word, 0, CALLER);
    return lock->word != 0;
}

/* Who asks goes on to the end. */
bool lock_is_wanted(const struct lock *lock)
{
    (void)lock;
    return false;
}

void lock_pass_begin(void)
{
    passed = 0;
    passing = thread_self();
}

void lock_pass_end(void)
{
    passing = 0;
}

bool lock_passes(void)
{
    return passing != 0 && passing == thread_self();
}

bool lock_is_passed(void)
{
    return passed != 0;
}
