#include "observe/profile_slabs.h"

#include <string.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "observe/profile_memory.h"
#include "span/span.h"

static struct list with_room[SIZE_CLASSES];
static struct list without_units[SIZE_CLASSES]; /* records that wait for the next slab */

struct slabs_counts slabs_live;

static size_t offset_of_samples(unsigned class)
{
    return align_up(slab_bytes(class), sizeof(struct sample *));
}

/* One for each block, behind the slab's record. */
static struct sample **samples_of(const struct slab *slab)
{
    return (struct sample **)((uintptr_t)slab + offset_of_samples(slab->class));
}

static struct slab *take_record(unsigned class)
{
    struct list_node *node = without_units[class].first;
    if (node == NULL)
        return profile_alloc(offset_of_samples(class) + size_classes[class].blocks * sizeof(struct sample *));
    list_remove(&without_units[class], node);
    struct slab *slab = LIST_ENTRY(node, struct slab, link);
    memset(slab, 0, slab_bytes(class));
    return slab;
}

static void drop_record(struct slab *slab, unsigned class)
{
    list_push_front(&without_units[class], &slab->link);
}

static bool make(unsigned class)
{
    bool zero;
    struct slab *slab = take_record(class);
    if (slab == NULL)
        return false;
    void *base = span_take(size_classes[class].units, size_class_slab_align(class), &zero);
    if (base == NULL) {
        drop_record(slab, class);
        return false;
    }
    if (HARDENED && !zero)
        memset(base, 0, size_classes[class].units * UNIT_SIZE);
    slab_prepare(slab, class, base);
    arena_assign(base, slab->units, TAG_SAMPLED, slab);
    list_push_front(&with_room[class], &slab->link);
    return true;
}

static void release(struct slab *slab)
{
    list_remove(&with_room[slab->class], &slab->link);
    arena_assign(slab->base, slab->units, TAG_NONE, NULL);
    span_give(slab->base, slab->units, true);
    drop_record(slab, slab->class);
}

static void count(ptrdiff_t blocks, uint32_t stride)
{
    store_relaxed(&slabs_live.blocks, slabs_live.blocks + (size_t)blocks);
    store_relaxed(&slabs_live.bytes, slabs_live.bytes + (size_t)blocks * stride);
}

bool slabs_have_room(unsigned class)
{
    return with_room[class].first != NULL || make(class);
}

void *slabs_take(unsigned class, struct sample *sample)
{
    struct slab *slab = LIST_ENTRY(with_room[class].first, struct slab, link);
    void *p;
    (void)slab_take(slab, &p, 1);
    samples_of(slab)[slab_index(slab, p)] = sample;
    if (slab->free == 0)
        list_remove(&with_room[class], &slab->link);
    count(1, slab->stride);
    return p;
}

enum slab_verdict slabs_put(void *p, struct sample **sample)
{
    if (arena_tag(p) != TAG_SAMPLED)
        return SLAB_DOUBLE_FREE; /* its slab has been given up since the caller looked */
    struct slab *slab = arena_span(p);
    enum slab_verdict verdict = slab_put(slab, p);
    if (verdict != SLAB_FINE)
        return verdict;
    struct list *room = &with_room[slab->class];
    *sample = samples_of(slab)[slab_index(slab, p)];
    if (HARDENED)
        memset(p, 0, slab->stride);
    count(-1, slab->stride);
    if (slab->free == 1)
        list_push_front(room, &slab->link);
    /* One empty slab of a class waits for the next block. */
    if (slab->free == slab->blocks && room->first != room->last)
        release(slab);
    return SLAB_FINE;
}

struct sample **slabs_sample(const void *p)
{
    const struct slab *slab = arena_tag(p) == TAG_SAMPLED ? arena_span(p) : NULL;
    bool is_live = slab != NULL && slab_holds(slab, p) && !slab_is_free(slab, p);
    return is_live ? &samples_of(slab)[slab_index(slab, p)] : NULL;
}

struct slabs_counts slabs_counts(void)
{
    return (struct slabs_counts){load_relaxed(&slabs_live.blocks), load_relaxed(&slabs_live.bytes)};
}
