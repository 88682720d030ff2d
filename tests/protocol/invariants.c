#include "invariants.h"

#include <stdint.h>
#include <string.h>

#include "arena/arena.h"
#include "heap/freeze.h"
#include "heap/letter.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/view.h"
#include "notes.h"
#include "scheduler.h"
#include "slab/slab.h"

enum { LINKS_MOST = 10000 };

static unsigned places[NOTES];
static unsigned losses_allowed;
static unsigned losses;

void invariants_thread_gone(void)
{
    losses_allowed = 1;
}

static unsigned walked;

/* Called for each element of a list. */
static bool ends(void)
{
    if (++walked > LINKS_MOST)
        sched_violation("a list has no end");
    return true;
}

static size_t note_at(const void *p)
{
    size_t at = ((uintptr_t)p - (uintptr_t)arena.base) >> UNIT_SHIFT;
    if (at >= NOTES)
        sched_violation("%p, found in the allocator, is no block", p);
    return at;
}

static void found(const void *p)
{
    size_t at = note_at(p);
    const struct slab *slab = arena.spans[at];
    if (arena.tags[at] >= TAG_KINDS && !slab_holds(slab, p))
        sched_violation("%p, found in the allocator, is no block", p);
    places[at]++;
}

static void count_letter(const struct letter *letter)
{
    for (uint32_t i = 0; i < letter->count; i++)
        found(letter->block[i]);
}

static void count_letters(const struct letter *letter)
{
    for (; letter != NULL && ends(); letter = letter->next)
        count_letter(letter);
}

static void count_heap(const struct heap *heap)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        void **slots = heap->shelf[class].slots;
        if (slots == NULL)
            continue;
        void **top = heap->view.top[class];
        if (top < slots || top > slots + heap->shelf[class].capacity)
            sched_violation("heap %u: the top of a magazine is outside", heap->number);
        if (slots[0] != NULL)
            sched_violation("heap %u: slot 0 of a magazine is not NULL", heap->number);
        if (slots[heap->shelf[class].capacity + 1] != SLOT_FULL)
            sched_violation("heap %u: nothing says where a magazine ends", heap->number);
        for (void **slot = slots + 1; slot <= top; slot++) {
            if (*slot != NULL)
                found(*slot);
            else if (heap->frozen != FREEZE_HOLES)
                sched_violation("heap %u: a magazine has a hole", heap->number);
        }
    }
    count_letters(heap->inbox);
    count_letters(heap->unread);
    for (int i = 0; i < OUTBOXES; i++)
        if (heap->outbox[i] != NULL)
            count_letter(heap->outbox[i]);
    uint32_t kept = 0;
    for (const struct letter *letter = heap->letters; letter != NULL && ends(); letter = letter->next)
        kept++;
    if (kept != heap->letters_kept)
        sched_violation("heap %u keeps %u letters, and counts %u", heap->number, kept, heap->letters_kept);
    for (uint32_t i = 0; i < heap->deferred_count; i++)
        found(heap->deferred[i]);
}

static bool is_on_list(const struct heap *heap, const struct slab *slab)
{
    for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++)
        for (struct list_node *node = heap->shelf[slab->class].partial[bucket].first; node != NULL && ends(); node = node->next)
            if (LIST_ENTRY(node, struct slab, link) == slab)
                return true;
    return false;
}

static void check_slab(const struct slab *slab, uintptr_t tag)
{
    const struct heap *heap = mail_owner(tag);
    uint32_t free = 0;
    for (uint32_t i = 0; i < slab->blocks; i++) {
        const char *p = slab->base + (size_t)i * slab->stride;
        size_t at = note_at(p);
        bool in_slab = (slab->bitmap[i / 64] >> i % 64 & 1) != 0;
        free += in_slab;
        unsigned sum = places[at] + in_slab + (unsigned)notes[at];
        if (sum == 0 && !heap->quarantined && ++losses > losses_allowed)
            sched_violation("block %p is lost", (const void *)p);
        if (sum > 1)
            sched_violation("block %p is in %u places (cached %u, in its slab %u, live %u)", (const void *)p, sum,
                            places[at], (unsigned)in_slab, (unsigned)notes[at]);
    }
    if (heap->quarantined)
        return;
    if (slab->free != free)
        sched_violation("a slab's count of free blocks is wrong: %u, not %u", slab->free, free);
    if ((tag & (SIZE_CLASSES - 1)) != slab->class)
        sched_violation("a tag's class is not its slab's");
    if (slab->stride != size_classes[slab->class].size || slab->units != size_classes[slab->class].units)
        sched_violation("a slab of blocks of %u bytes is of a class of %u", slab->stride, size_classes[slab->class].size);
    bool is_current = heap->shelf[slab->class].current == slab;
    bool listed = is_on_list(heap, slab);
    if (is_current && listed)
        sched_violation("a slab is the current one and on a list");
    if (free > 0 && !is_current && !listed)
        sched_violation("heap %u does not hold the slab that its tag names", heap->number);
}

static void check_slabs(void)
{
    size_t units = (arena.limit << POINTER_ALIGN_SHIFT) >> UNIT_SHIFT;
    const struct slab *before = NULL;
    for (size_t unit = 0; unit < units; unit++) {
        uintptr_t tag = arena.tags[unit];
        if (tag < TAG_KINDS)
            continue;
        const struct slab *slab = arena.spans[unit];
        if (slab == NULL)
            sched_violation("a tagged unit has no slab");
        if (slab == before)
            continue;
        before = slab;
        /* Of a heap whose thread vanished inside the door, it may have been on its way. */
        for (unsigned i = 0; i < slab->units && !mail_owner(tag)->quarantined; i++)
            if (arena.tags[unit + i] != tag)
                sched_violation("the units of a slab have different tags");
        check_slab(slab, tag);
    }
    for (size_t at = 0; at < NOTES; at++)
        if (places[at] + notes[at] > 0 && arena.tags[at] < TAG_KINDS)
            sched_violation("a block outlives its slab");
}

/* A heap's count of blocks that are out is the sum over its slabs, and what its lists hold is tagged as its own. */
static void check_shelves(const struct heap *heap)
{
    size_t units = (arena.limit << POINTER_ALIGN_SHIFT) >> UNIT_SHIFT;
    uint32_t out[SIZE_CLASSES] = {0};
    for (size_t unit = 0; unit < units; unit++) {
        const struct slab *slab = arena.spans[unit];
        uintptr_t class = arena.tags[unit] ^ (uintptr_t)heap;
        if (class < SIZE_CLASSES && (unit == 0 || arena.spans[unit - 1] != slab))
            out[class] += slab->blocks - slab->free;
    }
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        const struct shelf *shelf = &heap->shelf[class];
        uintptr_t tag = (uintptr_t)heap | class;
        if (out[class] != shelf->blocks_out)
            sched_violation("heap %u: %u blocks of class %u are out, and %lu are counted", heap->number, out[class], class,
                            shelf->blocks_out);
        if (shelf->current != NULL && arena_tag(shelf->current->base) != tag)
            sched_violation("heap %u: its current slab is tagged as another's", heap->number);
        for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++)
            for (struct list_node *node = shelf->partial[bucket].first; node != NULL && ends(); node = node->next)
                if (arena_tag(LIST_ENTRY(node, struct slab, link)->base) != tag)
                    sched_violation("heap %u: a slab on its lists is tagged as another's", heap->number);
    }
}

static void check_state(const struct heap *heap)
{
    if (heap->quarantined)
        return;
    if (heap->lock.word != 0)
        sched_violation("heap %u: its lock is held", heap->number);
    if (heap->in_door != 0)
        sched_violation("heap %u: counts as inside its door", heap->number);
    if (heap->tls != NULL && heap->frozen == FREEZE_NONE && heap->believed_asleep)
        sched_violation("heap %u: counts as asleep, and its owner has opened it", heap->number);
    if (heap->tls == NULL && heap->frozen != FREEZE_NONE)
        sched_violation("heap %u: frozen without an owner", heap->number);
    if (heap->tls != NULL) {
        const struct view *view = *heap->tls;
        if (view->heap != heap || (view->kind != VIEW_HEAP && view->kind != VIEW_TWIN))
            sched_violation("heap %u: its thread sees another view", heap->number);
        if (heap->frozen != FREEZE_NONE && view->kind != VIEW_TWIN)
            sched_violation("heap %u: frozen, and its thread sees its own view", heap->number);
    }
}

void invariants_check(void)
{
    memset(places, 0, sizeof places);
    losses = 0;
    walked = 0;
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        if (!heap->quarantined)
            count_heap(heap);
    if (arena.base == NULL)
        return;
    check_slabs();
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next) {
        check_state(heap);
        if (!heap->quarantined)
            check_shelves(heap);
    }
}
