/* Start-up of the allocator, and of each thread. */
#ifndef HAK_HEAP_START_H
#define HAK_HEAP_START_H

#include "heap/heap.h"

/* The calling thread, which is unborn, gets its heap, if a signal handler has not been faster; the first of all starts the
 * allocator. NULL: out of memory, and the thread is still unborn. */
struct heap *start_thread(void);

extern HIDDEN struct lock init_lock;

#endif
