/*
 * What of the memory that counts as held has no pages: holes in slabs, units in stock that nobody has used, the ends of large
 * blocks that nobody can use, metadata memory that was not given out, fences of the hardened library.
 */
#ifndef HAK_HEAP_ABSENT_H
#define HAK_HEAP_ABSENT_H

#include <stddef.h>

#include "base/compiler.h"

/* The closed pages behind slabs (fence.h): bytes. Fences of large blocks count as ends. */
extern HIDDEN size_t absent_fences;

/* Its bytes. Any thread; looks at each heap, and is a moment old. */
size_t absent_bytes(void);

#endif
