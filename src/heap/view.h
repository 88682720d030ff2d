/* The thread's view: the one word of thread-local storage. */
#ifndef HAK_HEAP_VIEW_H
#define HAK_HEAP_VIEW_H

#include "base/atomic.h"
#include "heap/heap.h"

/* Never NULL. Others write it to close the view (freeze.c, under the heap's lock), hence the atomics. */
extern HIDDEN _Thread_local struct view *thread_view __attribute__((tls_model("initial-exec")));

ALWAYS_INLINE struct view *view_load(void)
{
    return load_dependent(&thread_view);
}

/* The bin of a class, by its offset: both addresses that a hot function needs then fit an addressing mode. */
ALWAYS_INLINE struct bin *view_bin(struct view *view, size_t class)
{
    size_t offset = class * sizeof(struct bin);
    PIN(offset);
    return (struct bin *)(void *)((char *)view->bin + offset);
}

/* The static views. */
extern HIDDEN struct view view_unborn;
extern HIDDEN struct view view_birth;
extern HIDDEN struct view view_dead;

/* Closes every bin of a view in fresh memory. */
void view_close(struct view *view);

#endif
