/* Where a pointer goes that comes to the door to be freed: its tag says whose it is. What is no block ends the process. */
#ifndef HAK_HEAP_ROUTE_H
#define HAK_HEAP_ROUTE_H

#include "base/compiler.h"
#include "heap/heap.h"
#include "heap/keeper.h"

/* The owner of `heap`, inside its door. */
void route_free(struct heap *heap, void *p, const struct freeing *how);

/* The same of one whose tag says that it is a block of `heap`, of that class. */
void route_own(struct heap *heap, unsigned class, void *p);

/* The same of one whose tag says that it is large. Without a heap: NULL. */
void route_large(struct heap *heap, void *p);

/* The pointers that signal handlers have left. The same. */
void route_deferred(struct heap *heap);

/* A thread that has no heap to use now: it gave its own back, or is a signal handler that interrupted the door. */
COLD void route_without_heap(void *p, const struct freeing *how);

#endif
