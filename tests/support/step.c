#include "step.h"

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

static volatile int steps;
static volatile bool has_divided;
static int divide_every;

static void divide(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    int step = steps;
    steps = step + 1;
    if (step % divide_every != 0)
        return;
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        has_divided = true;
        interruption();
        stop_stepping(context);
        return;
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

bool step_divide_each(int every, void (*action)(void))
{
    struct sigaction each = {.sa_sigaction = divide, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK(sigaction(SIGTRAP, &each, NULL) == 0);
    steps = 0;
    divide_every = every;
    interruption = action;
    return step_begin();
}

bool step_has_divided(void)
{
    return has_divided;
}

int step_count(void)
{
    return steps;
}
