/* Handlers of signals that the library installs for itself. */
#ifndef HAK_OS_HANDLER_H
#define HAK_OS_HANDLER_H

#include <signal.h>
#include <stdbool.h>

typedef void os_handler(int number, siginfo_t *info, void *context);

/* Installs one, on the program's alternate stack if it has one; *before is what there was. */
void os_set_handler(int number, os_handler *handler, struct sigaction *before);

/* May that be done anywhere? Where libc has sigaction under one name only, the library's own (override/signals.c) stands in
 * front of it, and looks for it under the loader's lock the first time. */
bool os_set_handler_needs_no_lock(void);

/* Hands a signal on to who was there before. Back from this, a fault that nobody has handled comes again, for the kernel. */
void os_hand_on(int number, siginfo_t *info, void *context, const struct sigaction *before);

#endif
