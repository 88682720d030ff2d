#include "heap/door.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/fail.h"
#include "config/policy.h"
#include "heap/budget.h"
#include "heap/classes.h"
#include "heap/control.h"
#include "heap/door_steps.h"
#include "heap/entry.h"
#include "heap/events.h"
#include "heap/fork.h"
#include "heap/heartbeat.h"
#include "heap/interrupt.h"
#include "heap/keeper.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/profiler.h"
#include "heap/relief.h"
#include "heap/report.h"
#include "heap/route.h"
#include "heap/seal.h"
#include "heap/shelf.h"
#include "heap/sleeper.h"
#include "heap/start.h"
#include "heap/view.h"
#include "large/large.h"
#include "span/limit.h"
#include "span/span.h"

struct heap *door_enter(void)
{
    const struct view *seen = view_load();
    struct heap *heap = seen->heap;
    if (UNLIKELY(heap == NULL)) {
        if (load_relaxed(&seen->kind) != VIEW_UNBORN || (heap = start_thread()) == NULL)
            return NULL;
        seen = view_load();
    }
    if (UNLIKELY(heap->in_door != 0))
        return NULL;
    store_relaxed(&heap->visits, heap->visits + 1);
    entry_enter(heap, seen);
    if (UNLIKELY(heap->deferred_count > 0))
        route_deferred(heap);
    if (UNLIKELY(heap_events.entered != NULL))
        heap_events.entered(heap);
    return heap;
}

bool door_open(void)
{
    if (view_is(VIEW_UNBORN))
        (void)start_thread();
    return load_acquire(&arena.base) != NULL;
}

/* The request is served by now: what is given back is what nobody holds, and the callback may do as it likes. */
static COLD void leave_spent(struct heap *heap)
{
    struct limit_notice notice;
    if (!budget_is_at_beat(heap)) {
        budget_grant(heap);
        entry_leave(heap);
        return;
    }
    heartbeat(heap);
    bool tell = relief_at_heartbeat(heap, &notice);
    entry_leave(heap);
    if (tell)
        relief_tell(&notice);
}

static COLD void serve_tools(void)
{
    int saved = errno;
    if (heap_events.asked != NULL)
        heap_events.asked();
    errno = saved;
}

void door_leave(struct heap *heap)
{
    if (UNLIKELY(heap->view.budget < 0) && !interrupt_holds_magazines(heap))
        leave_spent(heap);
    else
        entry_leave(heap);
    if (UNLIKELY(control_is_asked()))
        serve_tools();
}

/* Whoever wants to know is told of the request that has emptied a magazine. */
static void *pop(struct heap *heap, unsigned class, size_t size)
{
    void (*refilled)(const struct heap *, size_t, unsigned, size_t) = load_relaxed(&heap_events.refilled);
    uint64_t refills = heap->counts->refills[class];
    void *block = magazine_pop(heap, class);
    if (refilled != NULL && heap->counts->refills[class] != refills)
        refilled(heap, size, class, magazine_count(heap, class) + (block != NULL));
    return block;
}

/* A class made at run time may have become another since the table was read (classes.h): its blocks may be too small, or it may
 * be no more. */
static NOINLINE void *small_of_any(struct heap *heap, size_t size)
{
    for (bool relieved = false;;) {
        uint32_t undone = load_acquire(&classes_undone);
        unsigned class = size_class_of(size);
        void *block = pop(heap, class, size);
        if (block != NULL) {
            if (LIKELY(size <= size_classes[class].size))
                return block;
            magazine_push(heap, class, block);
        } else if (classes_stayed(size, class, undone)) {
            if (relieved)
                return NULL;
            (void)relief_give_back(heap);
            relieved = true;
        }
    }
}

static void *small(struct heap *heap, size_t size)
{
    unsigned class = size_class_of(size);
    if (UNLIKELY(class >= SIZE_CLASSES_FIXED || load_relaxed(&heap_events.refilled) != NULL))
        return small_of_any(heap, size);
    void *block = magazine_pop(heap, class);
    if (UNLIKELY(block == NULL)) {
        (void)relief_give_back(heap);
        block = small_of_any(heap, size);
    }
    return block;
}

/* Of a request that the profiler wants to see. In the hardened library one of nothing is a pointer to closed memory. */
static void *profiled(size_t bytes, size_t size, const struct os_frame *from)
{
    const struct profiler *profiler = profiler_now();
    if (profiler == NULL || size == SEAL_BYTES)
        return NULL;
    return profiler->take(size_class_fixed(bytes), size - SEAL_BYTES, from);
}

/* A block from elsewhere has no seal. */
static void *sampled(struct heap *heap, size_t size, size_t align, const struct os_frame *from)
{
    heap_events_sample *guarded = load_acquire(&heap_events.sample);
    if (guarded == NULL || (HARDENED && size == SEAL_BYTES))
        return NULL;
    return guarded(heap, size - SEAL_BYTES, align, from);
}

/* The budget is spent: the request may be a sample, of the profiler's or else of those that are guarded. As door_malloc_of has it. */
static COLD void *sample(struct heap *heap, size_t bytes, size_t size, size_t align, struct os_frame from)
{
    void *block = NULL;
    if (!interrupt_holds_magazines(heap) && budget_take_sample(heap))
        block = profiled(bytes, size, &from);
    if (block == NULL)
        block = sampled(heap, size, align, &from);
    relief_note(heap);
    /* cppcheck-suppress returnDanglingLifetime ; a block, not the frame */
    return block;
}

static void *from_orphan(size_t size)
{
    /* Before the start the table says class 0 for everything. */
    if (load_acquire(&arena.base) == NULL)
        return NULL;
    void *block = orphan_malloc(size);
    if (block == NULL && !fork_holds_any_lock()) {
        (void)relief_give_back(NULL);
        block = orphan_malloc(size);
    }
    return block;
}

static COLD void *small_without_heap(size_t size)
{
    void *block = from_orphan(size);
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

/* By whichever function of the language: only a keeper asks. */
ENTRANCE NOINLINE static void *malloc_unkept(size_t size)
{
    bool zero;
    if (UNLIKELY(size > SMALL_MAX))
        return door_large(size, 1, &zero, 0, DOOR_CALLER);
    bool unborn = view_is(VIEW_UNBORN);
    struct heap *heap = door_enter();
    if (UNLIKELY(heap == NULL))
        return small_without_heap(size);
    if (unborn) /* the caller charged the static view */
        door_charge(heap, size);
    void *block = UNLIKELY(heap->view.budget < 0) ? sample(heap, size, size, 1, os_frame_linked()) : NULL;
    if (LIKELY(block == NULL))
        block = small(heap, size);
    door_tell(heap, "malloc", block, size);
    door_leave(heap);
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

ALWAYS_INLINE void *malloc_as(size_t size, enum family family)
{
    const struct keeper *keeper = keeper_now();
    if (UNLIKELY(keeper != NULL))
        return door_ask_keeper(keeper, &(struct request){.size = size, .align = 1, .family = family}, os_frame_linked());
    return malloc_unkept(size);
}

ENTRANCE NOINLINE void *door_malloc(size_t size)
{
    return malloc_as(size, FAMILY_MALLOC);
}

/* The caller's budget may be spent: then that is seen to before any block is taken. */
static COLD void *sample_first(size_t bytes, size_t size, size_t align, struct os_frame from)
{
    struct heap *heap = door_enter();
    if (heap == NULL)
        return NULL;
    void *block = heap->view.budget < 0 ? sample(heap, bytes, size, align, from) : NULL;
    if (block != NULL)
        door_tell(heap, "malloc", block, size);
    door_leave(heap);
    return block;
}

void *door_malloc_of(size_t bytes, size_t size, size_t align)
{
    if (UNLIKELY(keeper_now() != NULL))
        return door_malloc_kept(size, align, FAMILY_MALLOC);
    /* Threads without a heap share a view. */
    void *block = load_relaxed(&view_load()->budget) < 0 ? sample_first(bytes, size, align, os_frame_linked()) : NULL;
    return block != NULL ? block : malloc_unkept(bytes);
}

ENTRANCE NOINLINE void *door_new(size_t size)
{
    return malloc_as(size, FAMILY_NEW);
}

ENTRANCE NOINLINE void *door_new_array(size_t size)
{
    return malloc_as(size, FAMILY_NEW_ARRAY);
}

/* Whoever keeps blocks is told where the program has called the library. `heap`: its door is entered; NULL: not yet. */
ALWAYS_INLINE void free_as(struct heap *heap, void *p, struct freeing how)
{
    if (p == NULL)
        return;
    struct os_frame here = os_frame_linked();
    how.from = &here;
    if (heap == NULL)
        heap = door_enter();
    if (UNLIKELY(heap == NULL)) {
        route_without_heap(p, &how);
        return;
    }
    route_free(heap, p, &how);
    door_tell(heap, "free", p, how.size);
    entry_leave(heap);
    if (UNLIKELY(control_is_asked()))
        serve_tools();
}

static NOINLINE void free_any(struct heap *heap, void *p)
{
    free_as(heap, p, (struct freeing){.family = FAMILY_MALLOC, .size = SIZE_UNKNOWN});
}

/* Enters the door for the block of a slab, or a large one, if nobody wants to know and nothing else is to be done there. Else NULL. */
ALWAYS_INLINE struct heap *enter_for_block(uintptr_t tag)
{
    struct view *seen = view_load();
    struct heap *heap = seen->heap;
    if ((tag < TAG_KINDS && tag != TAG_LARGE) || heap == NULL || heap->in_door != 0 || heap->deferred_count > 0 || heap_events.leaving != NULL
        || control_is_asked())
        return NULL;
    store_relaxed(&heap->visits, heap->visits + 1);
    entry_enter(heap, seen);
    return heap;
}

/* What most frees that come to the door are is done here: own blocks, whose magazine is full, large ones, and another heap's if that
 * is but a word in a letter. `heap`: its door is entered; NULL: it could not be. */
ALWAYS_INLINE bool freed_at_once(struct heap *heap, uintptr_t tag, void *p)
{
    uintptr_t class = tag ^ (uintptr_t)heap;
    if (heap == NULL)
        return false;
    if (class < SIZE_CLASSES)
        route_own(heap, (unsigned)class, p);
    else if (tag == TAG_LARGE)
        route_large(heap, p);
    else if (!mail_add(heap, tag, p))
        return false;
    entry_leave(heap);
    return true;
}

NOINLINE void door_free(void *p)
{
    uintptr_t tag = arena_tag(p);
    struct heap *heap = enter_for_block(tag);
    if (!freed_at_once(heap, tag, p))
        free_any(heap, p);
}

NOINLINE void door_free_as(void *p, struct freeing how)
{
    uintptr_t tag = arena_tag(p);
    struct heap *heap = enter_for_block(tag);
    bool fits = how.size == SIZE_UNKNOWN || (tag >= TAG_KINDS && how.size <= size_classes[tag % SIZE_CLASSES].size);
    if (!fits || how.site != 0 || !freed_at_once(heap, tag, p))
        free_as(heap, p, how);
}

static COLD size_t size_of_other(const void *p)
{
    size_t size;
    const struct keeper *keeper = keeper_now();
    if (keeper != NULL && keeper->size_of(p, &size))
        return size;
    heap_events_size_of_other *size_of = load_acquire(&heap_events.size_of_other);
    if (size_of == NULL || !size_of(p, &size))
        report_pointer(FAULT_INVALID_USE, p);
    return size;
}

static COLD size_t size_of_sampled(const struct slab *slab, const void *p)
{
    if (slab_is_free(slab, p))
        report_pointer(FAULT_USE_AFTER_FREE, p);
    return slab->stride;
}

size_t door_usable_size(const void *p)
{
    uintptr_t tag = arena_tag(p);
    const struct heap *heap = view_load()->heap;
    uintptr_t class = tag ^ (uintptr_t)heap;
    if (heap != NULL && class < SIZE_CLASSES && magazine_is_top(heap, (unsigned)class, p))
        report_pointer(FAULT_USE_AFTER_FREE, p);
    if (tag >= TAG_KINDS && slab_holds(arena_span(p), p))
        return HARDENED ? seal_size(p, tag % SIZE_CLASSES, FAULT_USE_AFTER_FREE) : size_classes[tag % SIZE_CLASSES].size;
    if (tag == TAG_SAMPLED && slab_holds(arena_span(p), p))
        return size_of_sampled(arena_span(p), p);
    const struct large *block = large_find(p);
    return block != NULL ? block->bytes : size_of_other(p);
}

void door_use_sampled(const void *p, size_t size)
{
    if (arena_tag(p) != TAG_SAMPLED)
        return;
    struct heap *heap = door_enter();
    if (heap != NULL || !fork_holds_any_lock())
        profiler_now()->used(p, size);
    if (heap != NULL)
        door_leave(heap);
}

/* Not of classes made at run time: the slab that serves is not given up when it becomes empty, and such a class may be closed. */
static void *settle(struct heap *heap, void *p, size_t bytes)
{
    uintptr_t class = arena_tag(p) ^ (uintptr_t)heap;
    if (class >= SIZE_CLASSES_FIXED || !slab_is_sparse(arena_span(p)))
        return p;
    void *to = shelf_take_instead(heap, p);
    if (to == NULL)
        return p;
    memcpy(to, p, bytes);
    shelf_put(heap, p);
    return to;
}

void *door_settle(void *p, size_t bytes)
{
    struct heap *heap = door_enter();
    if (heap == NULL)
        return p;
    void *to = settle(heap, p, bytes);
    door_leave(heap);
    return to;
}

/* So many blocks of the class: more than the machine could ever hold are not begun with. */
static bool may_promise(unsigned class, size_t count)
{
    size_t bytes = size_class_bytes(class);
    return count <= (SIZE_MAX - UNIT_SIZE) / bytes && span_may_promise(divide_up(count * bytes, UNIT_SIZE));
}

size_t door_prewarm(size_t size, size_t count)
{
    struct heap *heap = size <= SMALL_MAX && keeper_now() == NULL ? door_enter() : NULL;
    if (heap == NULL)
        return 0;
    unsigned class = size_class_of(size);
    size_t ready = 0;
    if (may_promise(class, count)) {
        magazine_widen(heap, class, count);
        ready = magazine_count(heap, class) + shelf_room(heap, class);
        while (ready < count && shelf_prepare(heap, class))
            ready += size_classes[class].blocks;
    }
    door_leave(heap);
    return min_size(ready, count);
}

void door_visit(void (*work)(void *argument), void *argument)
{
    struct heap *heap = door_enter();
    work(argument);
    if (heap != NULL)
        entry_leave(heap);
}

size_t door_purge(bool also_cached)
{
    struct heap *heap = door_enter();
    size_t bytes = 0;
    if (heap == NULL)
        return 0;
    mail_post_all(heap);
    orphan_tidy();
    if (also_cached)
        bytes += sleeper_empty_all(heap);
    bytes += relief_give_back(also_cached ? heap : NULL);
    if (also_cached)
        bytes += shelf_purge_all(heap);
    entry_leave(heap);
    return bytes;
}
