#include "heap/magazine.h"

#include <string.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "base/fail.h"
#include "base/probe.h"
#include "config/policy.h"
#include "heap/classes.h"
#include "heap/crowd.h"
#include "heap/delay.h"
#include "heap/interrupt.h"
#include "heap/mail.h"
#include "heap/report.h"
#include "heap/shelf.h"

enum {
    CAPACITY_FIRST_MOST = 16,
    CAPACITY_LEAST = 2,
    STREAK_GROWS = 4, /* this many refills in a row widen the magazine too */
};

/* A heap's magazines hold at most this part of it, and may always hold so many bytes. */
enum { CACHE_SHARE = 6 };
#define CACHE_LEAST ((size_t)256 << 10)

/* Bytes that a fresh magazine may hold. */
#define FIRST_BYTES ((size_t)2048)

enum shelf_event { EVENT_NONE, EVENT_REFILL, EVENT_FLUSH };

static void **hold(struct heap *heap, unsigned class)
{
    void **top = magazine_hold(heap, class);
    ASSERT(top != closed_magazine);
    return top;
}

/* The first is NULL, the last says that it is full. */
static size_t slots_bytes(size_t capacity)
{
    return (capacity + 2) * sizeof(void *);
}

static size_t capacity_within(unsigned class, size_t bytes)
{
    return clamp_size(bytes / size_class_bytes(class), CAPACITY_LEAST, MAGAZINE_SLOTS_MOST);
}

/* Is it no more than that? Asked at each refill and flush, so without a division. */
static bool is_within(unsigned class, size_t capacity, size_t bytes)
{
    if (capacity <= CAPACITY_LEAST)
        return true;
    return capacity <= MAGAZINE_SLOTS_MOST && capacity * size_class_bytes(class) <= bytes;
}

static size_t capacity_most(unsigned class)
{
    return capacity_within(class, load_relaxed(&policy.magazine_bytes[class]));
}

/* Of a fresh magazine. */
static size_t capacity_first(unsigned class)
{
    size_t capacity = clamp_size(FIRST_BYTES / size_class_bytes(class), CAPACITY_LEAST, CAPACITY_FIRST_MOST);
    return min_size(capacity, capacity_most(class));
}

/* Blocks that a refill takes and a flush gives back. */
static size_t batch_of(const struct heap *heap, unsigned class)
{
    return divide_up(heap->shelf[class].capacity * load_relaxed(&policy.batch_eighths[class]), 8);
}

/* Most bytes that all magazines of the heap may hold: a share of what its slabs are made of, less among many threads. */
static size_t cache_most(const struct heap *heap)
{
    size_t share = (heap->units << UNIT_SHIFT) / CACHE_SHARE;
    size_t most = load_relaxed(&policy.thread_cache_bytes);
    size_t least = max_size(CACHE_LEAST, most / MAGAZINES_SHARE);
    return min_size(max_size(share, least), crowd_share(most, CACHE_LEAST));
}

bool magazine_is_too_wide(const struct heap *heap, unsigned class)
{
    size_t most = cache_most(heap);
    return heap->capacity_bytes > most + most / 4 && heap->shelf[class].capacity > capacity_first(class);
}

/* Bytes of the blocks that the capacity was made for. */
static size_t made_for(const struct heap *heap, unsigned class)
{
    return LIKELY(class < SIZE_CLASSES_FIXED) ? size_classes[class].size : heap->made_for[class - SIZE_CLASSES_FIXED];
}

static void note_made_for(struct heap *heap, unsigned class, uint32_t size)
{
    if (class >= SIZE_CLASSES_FIXED)
        heap->made_for[class - SIZE_CLASSES_FIXED] = (uint16_t)size;
}

/* Gives a held magazine more slots; returns its top in the new place. The old place stays when there is no
 * memory, or the thread's caches are at their limit. */
static void **resize(struct heap *heap, unsigned class, void **top, size_t capacity)
{
    struct shelf *shelf = &heap->shelf[class];
    size_t count = shelf->slots != NULL ? (size_t)(top - shelf->slots) : 0;
    size_t bytes = heap->capacity_bytes + (capacity - shelf->capacity) * made_for(heap, class);
    if (capacity > shelf->capacity && shelf->slots != NULL && bytes > cache_most(heap))
        return top;
    void **slots = meta_alloc(slots_bytes(capacity));
    if (slots == NULL)
        return top;
    ASSERT(count <= capacity);
    slots[capacity + 1] = SLOT_FULL;
    if (shelf->slots != NULL) {
        memcpy(slots + 1, shelf->slots + 1, count * sizeof(void *));
        meta_free(shelf->slots, slots_bytes(shelf->capacity));
    }
    store_relaxed(&heap->capacity_bytes, bytes);
    store_relaxed(&shelf->slots, slots);
    store_relaxed(&shelf->capacity, (uint16_t)capacity);
    return slots + count;
}

/* Is there a magazine that may be held now? */
static bool is_usable(const struct heap *heap, unsigned class)
{
    return heap->shelf[class].slots != NULL && !interrupt_holds_magazines(heap);
}

bool magazine_give_back(struct heap *heap, unsigned class, void *p)
{
    uintptr_t tag = arena_tag(p);
    if (UNLIKELY(tag != ((uintptr_t)heap | class))) {
        if (tag < TAG_KINDS)
            report_pointer(FAULT_DOUBLE_FREE, p); /* its slab has been given up: it was free before */
        if (mail_owner(tag) != heap)
            return mail_send(heap, mail_owner(tag), p); /* adopted by another heap since it was pushed */
    }
    shelf_put(heap, p);
    return true;
}

/* Gives back the oldest blocks of a held magazine; returns its new top. */
static void **flush_oldest(struct heap *heap, unsigned class, void **top, size_t count)
{
    void **slots = heap->shelf[class].slots;
    size_t held = (size_t)(top - slots);
    size_t left = 0;
    count = min_size(count, held);
    for (size_t i = 1; (i += shelf_put_all(heap, class, slots + i, (unsigned)(count + 1 - i))) <= count; i++)
        if (!magazine_give_back(heap, class, slots[i]))
            slots[++left] = slots[i];
    PROBE2(hakmem, flush, class, count - left);
    memmove(slots + 1 + left, slots + 1 + count, (held - count) * sizeof(void *));
    return slots + left + held - count;
}

/* The id is another class's than when the magazine was made (classes.h): what it may hold is counted anew. */
static COLD bool change_size(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->shelf[class];
    void **top = flush_oldest(heap, class, hold(heap, class), SIZE_MAX);
    uint32_t size = size_class_bytes(class);
    store_relaxed(&heap->capacity_bytes, heap->capacity_bytes + ((size_t)size - made_for(heap, class)) * shelf->capacity);
    note_made_for(heap, class, size);
    if (top == shelf->slots && capacity_first(class) < shelf->capacity)
        top = resize(heap, class, top, capacity_first(class));
    magazine_open(heap, class, top);
    return true;
}

static COLD bool make(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->shelf[class];
    note_made_for(heap, class, size_class_bytes(class));
    (void)resize(heap, class, NULL, capacity_first(class));
    if (shelf->slots == NULL)
        return false;
    magazine_open(heap, class, shelf->slots);
    return true;
}

/* Makes the magazine at the first use of the class by this heap. False: no memory, the magazine stays closed; or it
 * may not be held now. */
static bool create(struct heap *heap, unsigned class)
{
    if (interrupt_holds_magazines(heap))
        return false;
    if (UNLIKELY(heap->shelf[class].slots == NULL))
        return make(heap, class);
    if (LIKELY(class < SIZE_CLASSES_FIXED) || made_for(heap, class) == size_class_bytes(class))
        return true;
    return change_size(heap, class);
}

/* A held magazine's capacity follows its use: it doubles when refills and flushes alternate, or refills keep
 * coming. Where the policy's limit has come down, an empty one follows it. The limit is read once: it may come down
 * at any time, below what a full magazine holds. */
static void **adapt(struct heap *heap, unsigned class, void **top, enum shelf_event event)
{
    struct shelf *shelf = &heap->shelf[class];
    size_t most = load_relaxed(&policy.magazine_bytes[class]);
    bool alternates = shelf->last_event != EVENT_NONE && shelf->last_event != event;
    shelf->streak = event == EVENT_REFILL && !alternates ? (uint8_t)(shelf->streak + 1) : 0;
    shelf->last_event = (uint8_t)event;
    shelf->touched = true;
    if (event == EVENT_REFILL && !is_within(class, shelf->capacity, most))
        return resize(heap, class, top, capacity_within(class, most));
    if (!alternates && shelf->streak < STREAK_GROWS)
        return top;
    shelf->streak = 0;
    if (!is_within(class, (size_t)shelf->capacity + 1, most))
        return top;
    size_t twice = (size_t)shelf->capacity * 2;
    return resize(heap, class, top, is_within(class, twice, most) ? twice : capacity_within(class, most));
}

/* Of a class made at run time, whose magazine is empty: what the fixed class has comes before more slabs. */
static size_t borrow(struct heap *heap, unsigned class, void **top, size_t want)
{
    if (HARDENED || (heap->shelf[class].borrows == 0 && !classes_borrow(heap, class)))
        return 0;
    size_t got = shelf_take_there(heap, size_class_fixed(size_classes[class].size), top, (unsigned)want);
    if (got == 0)
        classes_return(heap, class);
    return got;
}

static NOINLINE size_t take_of_made(struct heap *heap, unsigned class, void **top, size_t want)
{
    size_t got = borrow(heap, class, top, want);
    return got < want ? got + shelf_take(heap, class, top - got, (unsigned)(want - got)) : got;
}

/* Fills a held, empty magazine to `want` blocks or what there is; returns its top. */
static void **fill(struct heap *heap, unsigned class, size_t want)
{
    void **slots = heap->shelf[class].slots;
    size_t got = UNLIKELY(class >= SIZE_CLASSES_FIXED) ? take_of_made(heap, class, slots + want, want)
                                                       : shelf_take(heap, class, slots + want, (unsigned)want);
    if (got < want)
        memmove(slots + 1, slots + 1 + want - got, got * sizeof(void *));
    if (HARDENED)
        delay_refill(heap, class, slots + 1, (unsigned)got);
    PROBE2(hakmem, refill, class, got);
    return slots + got;
}

void *magazine_pop(struct heap *heap, unsigned class)
{
    if (!create(heap, class)) {
        void *block = NULL;
        shelf_take(heap, class, &block, 1);
        return block;
    }
    bool mail = mail_waits(heap) && mail_fill(heap, class);
    void **top = hold(heap, class);
    if (top != heap->shelf[class].slots) {
        if (mail) {
            heap->shelf[class].touched = true;
            tally(heap, COUNT_BY_MAIL);
        }
    } else {
        owner_add(&heap->counts->refills[class], 1u);
        (void)adapt(heap, class, top, EVENT_REFILL);
        top = fill(heap, class, batch_of(heap, class));
    }
    void *block = top > heap->shelf[class].slots ? *top-- : NULL;
    magazine_open(heap, class, top);
    return block;
}

void magazine_flush(struct heap *heap, unsigned class, size_t count)
{
    if (!is_usable(heap, class))
        return;
    void **top = flush_oldest(heap, class, hold(heap, class), count);
    if (top == heap->shelf[class].slots && heap->shelf[class].borrows != 0)
        classes_return(heap, class);
    magazine_open(heap, class, top);
}

void magazine_flush_all(struct heap *heap)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        magazine_flush(heap, class, SIZE_MAX);
    if (HARDENED)
        delay_empty(heap);
}

void magazine_push(struct heap *heap, unsigned class, void *p)
{
    if (!create(heap, class)) {
        (void)magazine_give_back(heap, class, p);
        return;
    }
    struct shelf *shelf = &heap->shelf[class];
    void **top = hold(heap, class);
    if (top == shelf->slots + shelf->capacity) {
        top = adapt(heap, class, top, EVENT_FLUSH);
        if (top == shelf->slots + shelf->capacity) {
            size_t oldest = batch_of(heap, class);
            heap->freed += oldest * size_classes[class].size;
            owner_add(&heap->counts->flushes[class], 1u);
            owner_add(&heap->counts->of[COUNT_FLUSHED], oldest);
            top = flush_oldest(heap, class, top, oldest);
        }
    }
    if (top < shelf->slots + shelf->capacity)
        *++top = p;
    magazine_open(heap, class, top);
}

void magazine_widen(struct heap *heap, unsigned class, size_t count)
{
    size_t capacity = min_size(count, capacity_most(class));
    if (!create(heap, class) || capacity <= heap->shelf[class].capacity)
        return;
    void **top = hold(heap, class);
    magazine_open(heap, class, resize(heap, class, top, capacity));
}

void magazine_trim(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->shelf[class];
    if (!is_usable(heap, class))
        return;
    void **top = flush_oldest(heap, class, hold(heap, class), SIZE_MAX);
    tally(heap, COUNT_TRIMMED);
    if (shelf->capacity > CAPACITY_LEAST && top == shelf->slots)
        top = resize(heap, class, top, shelf->capacity / 2);
    magazine_open(heap, class, top);
}

void magazine_audit(struct heap *heap, unsigned class)
{
    const struct shelf *shelf = &heap->shelf[class];
    if (!is_usable(heap, class))
        return;
    void **top = hold(heap, class);
    /* Marked free, each block once; what is marked already is there twice, or was free. */
    for (void **slot = shelf->slots + 1; slot <= top; slot++) {
        if (arena_tag(*slot) != ((uintptr_t)heap | class))
            continue; /* another heap's by now: audited there */
        enum slab_verdict verdict = slab_put(arena_span(*slot), *slot);
        if (verdict != SLAB_FINE)
            report_refused(verdict, *slot);
    }
    for (void **slot = shelf->slots + 1; slot <= top; slot++)
        if (arena_tag(*slot) == ((uintptr_t)heap | class))
            slab_unput(arena_span(*slot), *slot);
    magazine_open(heap, class, top);
}

size_t magazine_count(const struct heap *heap, unsigned class)
{
    const struct shelf *shelf = &heap->shelf[class];
    uintptr_t slots = (uintptr_t)load_relaxed(&shelf->slots);
    size_t count = ((uintptr_t)load_relaxed(&heap->view.top[class]) - slots) / sizeof(void *);
    return slots == 0 || count > load_relaxed(&shelf->capacity) ? 0 : count;
}

size_t magazine_blocks(const struct heap *heap, unsigned class)
{
    size_t count = magazine_count(heap, class);
    return count - min_size(count, load_relaxed(&heap->shelf[class].holes));
}

void magazine_compact(struct heap *heap)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        struct shelf *shelf = &heap->shelf[class];
        void **slots = shelf->slots;
        if (slots == NULL)
            continue;
        store_relaxed(&shelf->holes, (uint16_t)0);
        void **top = hold(heap, class);
        void **to = slots;
        for (void **from = slots + 1; from <= top; from++)
            if (*from != NULL)
                *++to = *from;
        magazine_open(heap, class, to);
    }
}
