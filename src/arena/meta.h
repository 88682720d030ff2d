/*
 * Memory for the allocator's own structures, apart from user memory: chunks between guard pages, and what meta_give was given. Freed
 * pieces are given out again, whole or in part; nothing goes back to the system.
 */
#ifndef HAK_ARENA_META_H
#define HAK_ARENA_META_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/lock.h"

/* Zeroed memory, aligned to 64 bytes; `align` may ask for more (a power of two). NULL:
 * out of memory. Any thread; takes the meta lock. */
void *meta_alloc(size_t bytes);
void *meta_alloc_aligned(size_t bytes, size_t align);

/* Gives a piece from meta_alloc back; `bytes` is what was asked for. One of more than 4.5 KiB is lost. */
void meta_free(void *piece, size_t bytes);

/* Zeroed memory among the library's variables that nobody needs, for ever: serves what is aligned to 64 bytes before the first chunk
 * does. Once. Any thread; takes the meta lock. */
void meta_give(char *zero, size_t bytes);

/* Bytes of committed metadata memory. Takes no lock. */
size_t meta_committed(void);

/* Of them, those that were ever given out: the others have no memory. */
extern HIDDEN size_t meta_bytes;

/* Bytes of the others. Takes no lock. */
size_t meta_absent(void);

/* For fork and for calls from signal handlers. */
extern HIDDEN struct lock meta_lock;

#endif
