/* Compiled like the allocator, so that a block's note is a word like any other. */
#include "api/hot.h"
#include "invariants.h"
#include "notes.h"
#include "scheduler.h"

uint64_t notes[NOTES];

static uint64_t *note_of(const void *p)
{
    size_t at = ((uintptr_t)p - (uintptr_t)arena.base) >> UNIT_SHIFT;
    if (at >= NOTES)
        sched_violation("%p is no block", p);
    return &notes[at];
}

void *block_take_of(size_t size)
{
    void *p = hot_malloc(size);
    if (p == NULL)
        sched_violation("malloc returns NULL");
    if (size_classes[arena_tag(p) % SIZE_CLASSES].size < size)
        sched_violation("a request of %zu bytes gets a block of %u", size, size_classes[arena_tag(p) % SIZE_CLASSES].size);
    uint64_t *note = note_of(p);
    if (*note != 0)
        sched_violation("block %p is handed out twice", p);
    *note = 1;
    return p;
}

void *block_take(void)
{
    return block_take_of(BLOCK);
}

void block_free(void *p)
{
    uint64_t *note = note_of(p);
    if (*note != 1)
        sched_violation("the scenario frees %p, which is not live", p);
    *note = 0;
    hot_free(p);
}
