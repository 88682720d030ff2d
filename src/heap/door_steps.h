/* What each way through the door begins and ends with. Internal to the door. */
#ifndef HAK_HEAP_DOOR_STEPS_H
#define HAK_HEAP_DOOR_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "heap/events.h"
#include "heap/heap.h"
#include "heap/interrupt.h"
#include "heap/keeper.h"

/* In a function that was called, or jumped to, by one that the program has called. */
#define DOOR_CALLER ((uintptr_t)__builtin_return_address(0))

/* The calling thread's heap, its door entered; NULL if it has none to use now. */
struct heap *door_enter(void);

/* Leaves the door after a request for memory. */
void door_leave(struct heap *heap);

/* A large block, charged to the heap. `site`: the word that the program has for it, or 0. `caller`: to where the library's function
 * returns. On failure NULL, errno ENOMEM. */
void *door_large(size_t size, size_t align, bool *zero, uintptr_t site, uintptr_t caller);

/* A block of the keeper's, in the door all the same. What fits into a class was charged by the caller, if it had a heap. `from`: the
 * function of the library's that the program has called. On failure NULL, errno ENOMEM. */
NOINLINE void *door_ask_keeper(const struct keeper *keeper, const struct request *request, struct os_frame from);

/* Before the door is left: what has been done is told to who listens. */
ALWAYS_INLINE void door_tell(struct heap *heap, const char *operation, const void *p, size_t size)
{
    if (UNLIKELY(heap_events.leaving != NULL))
        heap_events.leaving(heap, operation, p, size);
}

/* An interrupted hot_malloc may be in the middle of charging the view. */
ALWAYS_INLINE void door_charge(struct heap *heap, size_t size)
{
    struct view *view = interrupt_holds_magazines(heap) ? &heap->twin : &heap->view;
    (void)owner_subtract(&view->budget, (int64_t)size);
}

#endif
