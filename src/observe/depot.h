/*
 * Stacks, each kept once, under a number. Those that were put in stay; memory for them is metadata, bounded, and apart from
 * the program's. No lock but that of metadata memory, for a new chunk.
 */
#ifndef HAK_OBSERVE_DEPOT_H
#define HAK_OBSERVE_DEPOT_H

#include <stddef.h>
#include <stdint.h>

/* What a depot says that has no room: an empty stack. */
enum { DEPOT_NONE = 0 };

/* The number of this stack (unwind.h). DEPOT_NONE if it is empty, or there is no memory for another. Any thread. */
uint32_t depot_put(const uintptr_t *calls, size_t count);

/* The same, but what is not there stays so. */
uint32_t depot_find(const uintptr_t *calls, size_t count);

/* Bytes of its memory. Any thread. */
size_t depot_bytes(void);

/* The stack with this number; *count of calls. Async-signal-safe. */
const uintptr_t *depot_get(uint32_t number, size_t *count);

#endif
