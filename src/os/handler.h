/* Handlers of signals that the library installs for itself. */
#ifndef HAK_OS_HANDLER_H
#define HAK_OS_HANDLER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

typedef void os_handler(int number, siginfo_t *info, void *context);

/* Is its handler a function, and not what the kernel does by itself? */
ALWAYS_INLINE bool os_has_handler(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Installs one, as the program would. *before is what there was; if that is a handler, the new one has its mask and its flags,
 * and may hand on to it; else it runs on the program's alternate stack, if there is one. */
void os_set_handler(int number, os_handler *handler, struct sigaction *before);

/* Hands a signal on to who was there before. Back from this, a fault that nobody has handled comes again, for the kernel; where the
 * kernel may not be told, the process ends here, with the status that shells give such an end. */
void os_hand_on(int number, siginfo_t *info, void *context, const struct sigaction *before);

/* `handler` is called before the program's own, the present one and later ones, and the program sees nothing of it; but no more
 * where the program asks for the default action later. In override/signals.c; null where that is not in the link. */
HIDDEN void os_call_first(int number, os_handler *handler) __attribute__((weak));

/* What was kept from a thread before, if anything could be changed. */
struct os_signals {
    uint64_t mask;
    bool blocked;
};

/* Keeps all signals from the calling thread but SIGSYS, which stays as it is: a sandbox may answer a system call by it, and were it
 * blocked, the call would end the process. */
struct os_signals os_block_signals(void);
void os_unblock_signals(struct os_signals before);

/* Looks for libc's sigaction, under the loader's lock if override/signals.c stands in front of it: the library's constructor does. All of
 * the above, and what the program does with sigaction, can then be done anywhere. */
void os_find_sigaction(void);

#endif
