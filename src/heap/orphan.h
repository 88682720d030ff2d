/* The orphan heap: behind a lock, for those who have no heap of their own to use now. These are threads that
 * gave theirs back (destructors that run after ours), signal handlers that interrupted the door, and threads
 * for which there is no memory for a heap. */
#ifndef HAK_HEAP_ORPHAN_H
#define HAK_HEAP_ORPHAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/lock.h"

/* A block of a class that serves `size` bytes. NULL: out of memory, or the caller is a signal handler that interrupted the
 * holder of a lock. */
void *orphan_malloc(size_t size);

/* Returns a block of some heap to it: the next time that heaps post, at the latest. False: no
 * memory, or as above; the block is lost. */
bool orphan_free(void *p);

/* Posts what orphan_free has collected, takes in what has come back, and gives empty slabs back. */
void orphan_tidy(void);

extern HIDDEN struct lock orphan_lock;

#endif
