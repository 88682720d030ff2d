/* Where a program may keep pointers to its blocks, besides the blocks. */
#ifndef HAK_OS_ROOTS_H
#define HAK_OS_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls look(start, end, argument) for the memory of the process that is its own, may be written, and has been: globals,
 * stacks, thread-local variables and what it has mapped. Of threads' stacks only what is in use: the caller's from
 * `own_stack` on, others' as far as the kernel tells. One thread at a time. False: the kernel does not say what is mapped. */
bool os_each_root(uintptr_t own_stack, void (*look)(uintptr_t start, uintptr_t end, void *argument), void *argument);

/* The same for what of this memory has been written; for all of it, where the kernel does not say. Not within os_each_root. */
void os_each_written(uintptr_t start, uintptr_t end, void (*look)(uintptr_t start, uintptr_t end, void *argument), void *argument);

#endif
