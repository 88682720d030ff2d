#include "heap/shelf.h"

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/fail.h"
#include "config/policy.h"
#include "heap/classes.h"
#include "heap/fence.h"
#include "heap/life.h"
#include "heap/report.h"
#include "heap/stock.h"
#include "span/huge.h"

enum { RECORD_LEAST = (int)(MIB >> UNIT_SHIFT), RECORD_STEP = 8 };

/* One without a block in use was made ahead of need, as those that become empty are given up. Who looks for such walks the whole list, so
 * it is known whether there are any. */
static void enlist(struct heap *heap, struct slab *slab)
{
    struct shelf *shelf = &heap->shelf[slab->class];
    unsigned bucket = slab_bucket_for(slab);
    ASSERT(slab->bucket == SLAB_BUCKETS && slab != shelf->current);
    slab->bucket = (uint8_t)bucket;
    slab->settled = (uint16_t)slab_bucket_end(slab, bucket);
    list_push_front(&shelf->partial[bucket], &slab->link);
    if (slab->free == slab->blocks)
        heap->prepared |= (uint64_t)1 << slab->class;
}

static void delist(struct heap *heap, struct slab *slab)
{
    struct shelf *shelf = &heap->shelf[slab->class];
    if (heap->look.next == &slab->link)
        heap->look.next = slab->link.next;
    if (slab->bucket < SLAB_BUCKETS)
        list_remove(&shelf->partial[slab->bucket], &slab->link);
    slab->bucket = SLAB_BUCKETS;
    slab->settled = 0;
}

/* The fullest partly used slab, so that others become empty; unlinked. */
static NOINLINE struct slab *fullest(struct heap *heap, unsigned class)
{
    const struct shelf *shelf = &heap->shelf[class];
    for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++) {
        if (shelf->partial[bucket].first != NULL) {
            struct slab *slab = LIST_ENTRY(shelf->partial[bucket].first, struct slab, link);
            delist(heap, slab);
            return slab;
        }
    }
    return NULL;
}

/* Holes are given back by age (heartbeat.c); but where the heap becomes larger than it ever was, much of it being holes, they go as it
 * grows. The next record is an eighth and a MiB further on: a heap that is large by turns does not pay each time. */
static NOINLINE void grow_beyond_record(struct heap *heap, unsigned units)
{
    uint32_t next = (uint32_t)(heap->units + heap->units / RECORD_STEP);
    if (shelf_free_bytes(heap) > (heap->units << UNIT_SHIFT) / 4)
        shelf_offset(heap, units, next);
    else
        heap->record = next;
}

/* Bit u of `clean`: unit u reads as zero. */
static void give_units(struct heap *heap, void *base, unsigned class, uint32_t fence, uint32_t clean)
{
    if (HARDENED)
        fence_give(heap, base, class, fence);
    else
        stock_give(heap, base, size_classes[class].units, clean);
}

static void count_out(struct shelf *shelf, int blocks)
{
    store_relaxed(&shelf->blocks_out, shelf->blocks_out + (uint64_t)(int64_t)blocks);
}

/* Of a class that stays what it is: the slab is counted. */
static struct slab *make_counted(struct heap *heap, unsigned class)
{
    unsigned units = size_classes[class].units;
    uint32_t fence = 0;
    uint32_t clean = 0;
    if (UNLIKELY(heap->units > heap->record + RECORD_LEAST))
        grow_beyond_record(heap, units);
    void *base = HARDENED ? fence_take(heap, class, &fence, &clean)
                          : stock_take(heap, units, size_class_slab_align(class), &clean);
    if (base == NULL)
        return NULL;
    struct slab *slab = slab_make(class, base);
    if (slab == NULL) {
        give_units(heap, base, class, fence, clean);
        return NULL;
    }
    slab->fence = (uint8_t)fence;
    slab->collapses = huge_collapses_at(base);
    if (policy.huge != HUGE_ON) /* a first touch takes more than a page */
        slab_set_clean(slab, clean);
    shelf_note_holes(heap, slab_absent_bytes(slab));
    arena_assign(base, units, (uintptr_t)heap | class, slab);
    return slab;
}

static struct slab *make(struct heap *heap, unsigned class)
{
    if (!classes_count_slab(heap, class))
        return NULL;
    struct slab *slab = make_counted(heap, class);
    if (slab == NULL)
        classes_uncount_slab(heap, class);
    return slab;
}

static void release(struct heap *heap, struct slab *slab)
{
    unsigned class = slab->class;
    if (slab->absent != 0) {
        shelf_know_absent(heap, slab);
        shelf_note_holes(heap, -slab_absent_bytes(slab));
    }
    arena_assign(slab->base, slab->units, TAG_NONE, NULL);
    give_units(heap, slab->base, class, slab->fence, slab_clean_units(slab));
    slab_discard(slab);
    classes_uncount_slab(heap, class);
}

/* A slab with room to become the current one; the stages of a refill. */
static struct slab *find_room(struct heap *heap, unsigned class, bool may_make)
{
    struct slab *slab = fullest(heap, class);
    if (slab != NULL) {
        tally(heap, COUNT_BY_PARTIAL);
    } else if (life_adopt(heap, class)) {
        slab = fullest(heap, class);
        tally(heap, COUNT_BY_ADOPTED);
    } else if (may_make && (slab = make(heap, class)) != NULL) {
        tally(heap, COUNT_BY_NEW);
    } else if (may_make) {
        slab = life_adopt_any(heap, class) ? fullest(heap, class) : NULL;
        tally(heap, slab != NULL ? COUNT_BY_ADOPTED : COUNT_NOT_SERVED);
    }
    return slab;
}

static NOINLINE unsigned take_blocks(struct heap *heap, struct slab *slab, void **top, unsigned want)
{
    uint32_t absent = slab->absent;
    slab->heat = SLAB_HOT;
    unsigned got = slab_take(slab, top, want);
    if (UNLIKELY(slab->absent != absent))
        shelf_note_taken(heap, slab, slab_bytes_of_pages(absent & ~slab->absent));
    if (HARDENED && got > 0)
        fence_touch(slab, *(top - got + 1));
    return got;
}

static unsigned take_from_all(struct heap *heap, unsigned class, void **top, unsigned want, bool may_make)
{
    struct shelf *shelf = &heap->shelf[class];
    unsigned got = 0;
    if (shelf->current != NULL)
        got = take_blocks(heap, shelf->current, top, want);
    if (got > 0)
        tally(heap, COUNT_BY_CURRENT);
    while (got < want) {
        struct slab *slab = got == 0 ? find_room(heap, class, may_make) : fullest(heap, class);
        if (slab == NULL)
            break;
        shelf->current = slab;
        got += take_blocks(heap, slab, top - got, want - got);
    }
    count_out(shelf, (int)got);
    return got;
}

unsigned shelf_take(struct heap *heap, unsigned class, void **top, unsigned want)
{
    return take_from_all(heap, class, top, want, true);
}

unsigned shelf_take_there(struct heap *heap, unsigned class, void **top, unsigned want)
{
    return take_from_all(heap, class, top, want, false);
}

void *shelf_take_instead(struct heap *heap, const void *p)
{
    const struct slab *slab = arena_span(p);
    struct shelf *shelf = &heap->shelf[slab->class];
    void *block = NULL;
    if (shelf->current == NULL || shelf->current->free == 0)
        shelf->current = fullest(heap, slab->class);
    if (shelf->current != NULL && shelf->current != slab)
        count_out(shelf, (int)take_blocks(heap, shelf->current, &block, 1));
    return block;
}

static NOINLINE void move_on(struct heap *heap, struct slab *slab)
{
    delist(heap, slab);
    if (slab->free == slab->blocks)
        release(heap, slab);
    else
        enlist(heap, slab);
}

/* The slab has more free blocks than before: it may be another list's, or nobody's. */
ALWAYS_INLINE void relist(struct heap *heap, struct shelf *shelf, struct slab *slab)
{
    slab->heat = SLAB_HOT;
    if (UNLIKELY(slab->free >= slab->settled) && slab != shelf->current)
        move_on(heap, slab);
}

unsigned shelf_put_all(struct heap *heap, unsigned class, void *const *blocks, unsigned count)
{
    struct shelf *shelf = &heap->shelf[class];
    unsigned done = 0;
    while (done < count && arena_tag(blocks[done]) == ((uintptr_t)heap | class)) {
        struct slab *slab = arena_span(blocks[done]);
        enum slab_verdict verdict;
        done += slab_put_run(slab, blocks + done, count - done, &verdict);
        if (UNLIKELY(verdict != SLAB_FINE))
            report_refused(verdict, blocks[done]);
        relist(heap, shelf, slab);
    }
    ASSERT(shelf->blocks_out >= done);
    count_out(shelf, -(int)done);
    return done;
}

void shelf_put(struct heap *heap, void *p)
{
    unsigned put = shelf_put_all(heap, arena_tag(p) % SIZE_CLASSES, &p, 1);
    ASSERT(put == 1);
    (void)put;
}

void shelf_adopt(struct heap *heap, struct slab *slab)
{
    struct shelf *shelf = &heap->shelf[slab->class];
    arena_assign(slab->base, slab->units, (uintptr_t)heap | slab->class, slab);
    count_out(shelf, (int)(slab->blocks - slab->free));
    owner_add(&heap->counts->slabs[slab->class], 1u);
    store_relaxed(&heap->units, heap->units + slab->units);
    shelf_note_holes(heap, slab_absent_bytes(slab));
    enlist(heap, slab);
}

struct slab *shelf_part_with(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->shelf[class];
    struct slab *slab = fullest(heap, class);
    if (slab == NULL && shelf->current != NULL && shelf->current->free > 0) {
        slab = shelf->current;
        shelf->current = NULL;
    }
    if (slab != NULL) {
        ASSERT(shelf->blocks_out >= slab->blocks - slab->free);
        count_out(shelf, -(int)(slab->blocks - slab->free));
        classes_uncount_slab(heap, class);
        shelf_note_holes(heap, -slab_absent_bytes(slab));
        store_relaxed(&heap->units, heap->units - slab->units);
    }
    return slab;
}

void shelf_hand_over(struct heap *from, struct heap *to)
{
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++)
        for (struct slab *slab; !lock_is_wanted(&from->lock) && (slab = shelf_part_with(from, class)) != NULL;)
            shelf_adopt(to, slab);
}

static COLD void release_prepared(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->shelf[class];
    struct list_node *next;
    heap->prepared &= ~((uint64_t)1 << class);
    for (struct list_node *node = shelf->partial[SLAB_BUCKETS - 1].first; node != NULL; node = next) {
        struct slab *slab = LIST_ENTRY(node, struct slab, link);
        next = node->next;
        if (slab->free != slab->blocks)
            continue;
        delist(heap, slab);
        release(heap, slab);
    }
}

void shelf_leave(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->shelf[class];
    struct slab *slab = shelf->current;
    if ((heap->prepared >> class & 1) != 0)
        release_prepared(heap, class);
    if (slab == NULL)
        return;
    shelf->current = NULL;
    if (slab->free == slab->blocks)
        release(heap, slab);
    else if (slab->free > 0)
        enlist(heap, slab);
}

void shelf_release_empty(struct heap *heap)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        shelf_leave(heap, class);
}

bool shelf_prepare(struct heap *heap, unsigned class)
{
    struct slab *slab = make(heap, class);
    if (slab != NULL)
        enlist(heap, slab);
    return slab != NULL;
}

size_t shelf_room(const struct heap *heap, unsigned class)
{
    const struct shelf *shelf = &heap->shelf[class];
    size_t room = shelf->current != NULL ? shelf->current->free : 0;
    for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++)
        for (struct list_node *node = shelf->partial[bucket].first; node != NULL; node = node->next)
            room += LIST_ENTRY(node, struct slab, link)->free;
    return room;
}
