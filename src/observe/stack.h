/* The calling thread's stack, for those that take it often. */
#ifndef HAK_OBSERVE_STACK_H
#define HAK_OBSERVE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observe/unwind.h"
#include "os/frame.h"

enum { STACK_CALLS_MOST = UNWIND_MEMO };

/* unwind of a sound stack, quick if the thread's stack is much as it was the last time. */
size_t stack_take(const struct os_frame *from, uintptr_t *calls, size_t most);

/* Forgets the stacks of before, but for those that are being taken: what was noted as a frame pointer may have been the address of
 * a block, and must not seem to lead to it. */
void stack_forget(void);

/* In a fork's child: what threads were taking that it has not is forgotten. */
void stack_forked(void);

/* This library, as its file's name says. False: it is part of the program, or of another library. */
bool stack_own_module(struct os_module *own);

/* How many calls at the top are not the program's, of a stack from a function of the library's that the program has called:
 * all of this library; where that is part of something else, those that are known to be ours. */
size_t stack_own_calls(const uintptr_t *calls, size_t count);

#endif
