/*
 * The byte budget. A heap is at a position in its stream of requested bytes, granted - budget; ahead of it lie the next
 * heartbeat and the next sample of the profiler. It is granted bytes up to the nearer of the two, so that the request that
 * passes either comes to the door.
 *
 * Samples are a Poisson process over the bytes: each has the same chance of being one, whatever came before. So what a
 * program does, and how its sizes follow each other, cannot hide from it, and where the next sample is may be drawn anew at
 * any time.
 *
 * Owner inside its door, while no hot function is interrupted but where it says so; budget_begin, who makes the heap.
 */
#ifndef HAK_HEAP_BUDGET_H
#define HAK_HEAP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "heap/heap.h"

/* Of what is freed and requested again at once one byte in so many brings the heartbeat nearer. */
enum { BEAT_SHARE = 8 };

ALWAYS_INLINE int64_t budget_position(const struct heap *heap)
{
    return heap->granted - heap->view.budget;
}

void budget_begin(struct heap *heap);

/* Charges the heap's view with what was requested while that was closed. The twin lies on a page that a heap does not touch before
 * it is first closed, so it is written to only where there is something. */
ALWAYS_INLINE void budget_charge_view(struct heap *heap)
{
    if (UNLIKELY(heap->twin.budget != 0)) {
        owner_add(&heap->view.budget, heap->twin.budget);
        store_relaxed(&heap->twin.budget, (int64_t)0);
    }
}

/* Grants what there is to the next heartbeat or sample. */
void budget_grant(struct heap *heap);

/* Has the heap passed the next heartbeat? */
ALWAYS_INLINE bool budget_is_at_beat(const struct heap *heap)
{
    return budget_position(heap) > heap->beat_after;
}

/* Is the request that was charged last a sample? If so, the next lies ahead afterwards. */
bool budget_take_sample(struct heap *heap);

/* Puts the heartbeat off by most of a request that a freed block has served: as much less waits to be given back as the heap has freed, and
 * the heartbeat has nothing new to see. Not where time has passed since the last one until the block was freed (at `freed_ms`), which may have made
 * something old enough to go, nor beyond a sample. Returns for how much of the request more was granted: that is not to be charged. Also
 * while a hot function is interrupted. */
ALWAYS_INLINE size_t budget_put_off_beat(struct heap *heap, size_t size, uint64_t freed_ms)
{
    size_t again = min_size(size, heap->freed);
    size_t later = again - again / BEAT_SHARE;
    if (freed_ms != heap->beat_ms || (int64_t)later > heap->sample_after - heap->granted)
        return 0;
    heap->freed -= again;
    heap->beat_after += (int64_t)later;
    owner_add(&heap->granted, (int64_t)later);
    return later;
}

/* Makes a heartbeat due at once. */
void budget_hurry(struct heap *heap);

#endif
