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

/* What somebody has sent; what the kernel says of memory that has failed and nobody reads now; and what it says where it cannot call
 * another signal's handler, which is not told from what the processor says of an address that is none. The rest comes again, when the
 * instruction is run again. */
static bool comes_once(int number, const siginfo_t *info)
{
    return info->si_code <= 0 || info->si_code == SI_KERNEL || (number == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

void os_hand_on(int number, siginfo_t *info, void *context, const struct sigaction *before)
{
    if (!os_has_handler(before)) {
        bool done = sigaction(number, before, NULL) == 0;
        if (done && comes_once(number, info))
            /* cppcheck-suppress unreachableCode ; it returns: the signal is kept back until the handler has ended */
            done = raise(number) == 0;
        /* Forbidden, in a sandbox: it would come again for ever, or never. */
        if (!done && (before->sa_handler == SIG_DFL || info->si_code > 0))
            (void)kernel(SYS_exit_group, 128 + number, 0, 0, 0, 0);
    } else if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(number, info, context);
    } else {
        before->sa_handler(number);
    }
}

/* The kernel's set, not libc's, which leaves out signals of its own. */
struct os_signals os_block_signals(void)
{
    const uint64_t most = ~((uint64_t)1 << (SIGSYS - 1));
    struct os_signals before = {0};
    before.blocked = !is_error(kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&most, (long)&before.mask, sizeof most, 0));
    return before;
}

void os_unblock_signals(struct os_signals before)
{
    if (before.blocked)
        (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before.mask, 0, sizeof before.mask, 0);
}

void os_find_sigaction(void)
{
    (void)sigaction(SIGSEGV, NULL, NULL);
}
