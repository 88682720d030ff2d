#include "os/handler.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/kernel.h"

/* What there was must be known before the signal may come. */
void os_set_handler(int number, os_handler *handler, struct sigaction *before)
{
    struct sigaction action = {.sa_flags = SA_ONSTACK | SA_RESTART};
    struct sigaction replaced;
    if (sigaction(number, NULL, before) != 0)
        return;
    if (os_has_handler(before))
        action = *before;
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = handler;
    if (sigaction(number, &action, &replaced) == 0 && replaced.sa_handler != before->sa_handler)
        *before = replaced; /* by another thread, in between */
}

void os_hand_on(int number, siginfo_t *info, void *context, const struct sigaction *before)
{
    if (!os_has_handler(before)) {
        (void)sigaction(number, before, NULL);
        /* What the processor has raised comes again; what somebody has sent does not. */
        if (info->si_code <= 0)
            (void)raise(number);
    } else if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(number, info, context);
    } else {
        before->sa_handler(number);
    }
}

/* The kernel's set, not libc's, which leaves out signals of its own. */
uint64_t os_block_signals(void)
{
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0);
    return before;
}

void os_unblock_signals(uint64_t before)
{
    (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0);
}

void os_find_sigaction(void)
{
    (void)sigaction(SIGSEGV, NULL, NULL);
}
