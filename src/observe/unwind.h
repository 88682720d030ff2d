/*
 * Stacks: who called whom, up to the start of the thread.
 *
 * By call frame information, which nearly all code has, and by frame pointers where it has none. Takes no lock and allocates
 * nothing. May be used anywhere, in signal handlers too.
 */
#ifndef HAK_OBSERVE_UNWIND_H
#define HAK_OBSERVE_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#include "os/frame.h"

/* Does the stack have to be as the program's code has left it? */
enum unwind_trust {
    UNWIND_SOUND,  /* as for exceptions: it is the caller's own, and where it leads control will return to. No system call */
    UNWIND_BROKEN, /* nothing read from it is believed: each word is copied by the kernel. A stack that has been overwritten
                      ends early; and each after one call, where the kernel does not copy */
};

/* The addresses of the instructions in progress, from->pc first, then the calls that led there; at most `most`. Returns how
 * many. */
size_t unwind(const struct os_frame *from, enum unwind_trust trust, uintptr_t *calls, size_t most);

#endif
