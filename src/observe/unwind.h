/*
 * Stacks: who called whom, up to the start of the thread.
 *
 * By call frame information, which nearly all code has, and by frame pointers where it has none. Takes no lock, allocates
 * nothing, and believes nothing that it reads from the stack: a stack that has been overwritten ends early. May be used
 * anywhere, in signal handlers too.
 */
#ifndef HAK_OBSERVE_UNWIND_H
#define HAK_OBSERVE_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#include "os/frame.h"

/* The addresses of the instructions in progress, from->pc first, then the calls that led there; at most `most`. Returns how
 * many. */
size_t unwind(const struct os_frame *from, uintptr_t *calls, size_t most);

#endif
