/* The profiler's memory: metadata, bounded, and apart from the program's. The profiler's lock is held, but for
 * profile_bytes. */
#ifndef HAK_OBSERVE_PROFILE_MEMORY_H
#define HAK_OBSERVE_PROFILE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* Zeroed, and never given back. NULL: there is none, or it would be too much. */
void *profile_alloc(size_t bytes);

/* Bytes of it, those of the depot's stacks included. Any thread. */
size_t profile_bytes(void);

/* The same without the stacks, for who reads it from outside. */
extern HIDDEN size_t profile_own_bytes;

/* Is that as much as may be? */
bool profile_is_full(void);

extern HIDDEN size_t profile_bytes_most;

#endif
