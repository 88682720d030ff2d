#include "os/handler.h"

#include <stddef.h>

int __sigaction(int signal, const struct sigaction *action, struct sigaction *old) __attribute__((weak));

static int set_action(int number, const struct sigaction *action, struct sigaction *before)
{
    return &__sigaction != NULL ? __sigaction(number, action, before) : sigaction(number, action, before);
}

bool os_set_handler_needs_no_lock(void)
{
    return &__sigaction != NULL;
}

void os_set_handler(int number, os_handler *handler, struct sigaction *before)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    action.sa_sigaction = handler;
    (void)sigemptyset(&action.sa_mask);
    (void)set_action(number, &action, before);
}

void os_hand_on(int number, siginfo_t *info, void *context, const struct sigaction *before)
{
    if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) {
        (void)set_action(number, before, NULL);
        /* What the processor has raised comes again; what somebody has sent does not, and abort sees to its own. */
        if (info->si_code <= 0 && number != SIGABRT)
            (void)raise(number);
    } else if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(number, info, context);
    } else {
        before->sa_handler(number);
    }
}
