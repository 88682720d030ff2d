#include "step.h"

#include <signal.h>
#include <stddef.h>

#include "check.h"

#if defined(__x86_64__)

#include <ucontext.h>

enum { TRAP_FLAG = 0x100 };

/* The red zone below the stack pointer is the compiler's. */
static inline __attribute__((always_inline)) void change_flags(unsigned long clear, unsigned long set)
{
    unsigned long flags;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tpopq %0\n\tlea 128(%%rsp), %%rsp" : "=r"(flags) : : "memory");
    flags = (flags & ~clear) | set;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushq %0\n\tpopfq\n\tlea 128(%%rsp), %%rsp" : : "r"(flags) : "cc", "memory");
}

bool step_begin(void)
{
    change_flags(0, TRAP_FLAG);
    return true;
}

void step_end(void)
{
    change_flags(TRAP_FLAG, 0);
}

/* In the code that a handler with this context has interrupted. */
static void stop_stepping(void *context)
{
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

#else

bool step_begin(void)
{
    return false;
}

void step_end(void)
{
}

static void stop_stepping(void *context)
{
    (void)context;
}

#endif

static volatile int steps_left;
static void (*interruption)(void);

static void count_step(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    steps_left = steps_left - 1;
    if (steps_left > 0)
        return;
    interruption();
    stop_stepping(context);
}

bool step_interrupt_after(int instructions, void (*action)(void))
{
    struct sigaction each = {.sa_sigaction = count_step, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK(sigaction(SIGTRAP, &each, NULL) == 0);
    steps_left = instructions;
    interruption = action;
    return step_begin();
}

bool step_was_interrupted(void)
{
    return steps_left == 0;
}
