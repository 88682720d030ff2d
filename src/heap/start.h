/* Start-up of the allocator, and of each thread. */
#ifndef HAK_HEAP_START_H
#define HAK_HEAP_START_H

#include "heap/heap.h"

/* The calling thread, which is unborn, gets its heap, if a signal handler has not been faster; the first of all starts the
 * allocator. NULL: out of memory, and the thread is still unborn. */
struct heap *start_thread(void);

/* Registers what is done before and after a fork, once. What is registered first comes last before a fork: whoever registers earlier, and waits in
 * there for a thread that allocates, waits for ever. So the library's constructor does not leave it to the first operation. */
void start_expects_forks(void);

extern HIDDEN struct lock init_lock;

/* Not 0: the allocator has been started. */
extern HIDDEN uint32_t start_done;

#endif
