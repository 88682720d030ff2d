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
#include "heap/entry.h"
#include "heap/events.h"
#include "heap/fork.h"
#include "heap/heartbeat.h"
#include "heap/interrupt.h"
#include "heap/keeper.h"
#include "heap/life.h"
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
#include "heap/stock.h"
#include "heap/view.h"
#include "large/large.h"
#include "large/site.h"
#include "span/limit.h"
#include "span/span.h"

/* In a function that was called, or jumped to, by one that the program has called. */
#define RETURN_ADDRESS ((uintptr_t)__builtin_return_address(0))

/* The calling thread's heap, its door entered; NULL if it has none to use now. */
static struct heap *enter_own(void)
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

/* Before the door is left: what has been done is told to who listens. */
ALWAYS_INLINE void tell_listener(struct heap *heap, const char *operation, const void *p, size_t size)
{
    if (UNLIKELY(heap_events.leaving != NULL))
        heap_events.leaving(heap, operation, p, size);
}

bool door_open(void)
{
    if (view_is(VIEW_UNBORN))
        (void)start_thread();
    return load_acquire(&arena.base) != NULL;
}

/* An interrupted hot_malloc may be in the middle of charging the view. */
static void charge(struct heap *heap, size_t size)
{
    struct view *view = interrupt_holds_magazines(heap) ? &heap->twin : &heap->view;
    view->budget -= (int64_t)size;
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
    bool tell = relief_at_heartbeat(&notice);
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

/* Leaves the door after a request for memory. */
static void leave(struct heap *heap)
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
static void *profiled(size_t size, const struct os_frame *from)
{
    const struct profiler *profiler = profiler_now();
    if (profiler == NULL || size == SEAL_BYTES)
        return NULL;
    return profiler->take(size_class_fixed(size), size - SEAL_BYTES, from);
}

/* The budget is spent: the request may be a sample, of the profiler's or else of those that are guarded. */
static COLD void *sample(struct heap *heap, size_t size, struct os_frame from)
{
    void *block = NULL;
    if (!interrupt_holds_magazines(heap) && budget_take_sample(heap))
        block = profiled(size, &from);
    if (block == NULL && heap_events.sample != NULL)
        block = heap_events.sample(heap, size);
    relief_note(heap);
    /* cppcheck-suppress returnDanglingLifetime ; a block, not the frame */
    return block;
}

static COLD void sample_large(struct heap *heap, const void *p, size_t size, struct os_frame from)
{
    const struct profiler *profiler = profiler_now();
    struct large *block = large_find(p);
    if (interrupt_holds_magazines(heap) || !budget_take_sample(heap) || profiler == NULL || block->sample != NULL)
        return;
    block->sample = profiler->note(p, size, &from);
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

/* Of a keeper, in the door all the same. What fits into a class was charged by the caller, if it had a heap. */
static NOINLINE void *from_keeper(const struct keeper *keeper, const struct request *request, struct os_frame from)
{
    bool charged = request->size <= SMALL_MAX && request->align == 1 && !view_is(VIEW_UNBORN);
    struct heap *heap = enter_own();
    void *block = NULL;
    if (heap != NULL || (load_acquire(&arena.base) != NULL && !fork_holds_any_lock())) {
        block = keeper->allocate(request, &from);
        if (block == NULL && request->size <= PTRDIFF_MAX && limit_is_short_of(request->size)) {
            (void)relief_give_back(heap);
            block = keeper->allocate(request, &from);
        }
    }
    if (heap != NULL) {
        if (!charged && block != NULL)
            charge(heap, request->size);
        relief_note(heap);
        leave(heap);
    }
    if (block == NULL)
        errno = ENOMEM;
    /* cppcheck-suppress returnDanglingLifetime ; a block of the keeper's, not the frame that it was told */
    return block;
}

void *door_malloc_kept(size_t size, size_t align, enum family family)
{
    return from_keeper(keeper_now(), &(struct request){size, align, family}, os_frame_here());
}

static COLD void *small_without_heap(size_t size)
{
    void *block = from_orphan(size);
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

static void *large(struct heap *heap, size_t size, size_t align, uint32_t site, bool *zero)
{
    void *block = large_alloc_at(size, align, site, zero);
    if (block == NULL && limit_is_short_of(size)) {
        (void)relief_give_back(heap);
        block = large_alloc_at(size, align, site, zero);
    }
    if (heap != NULL && block != NULL) {
        charge(heap, size);
        tally(heap, COUNT_LARGE);
        owner_add(&heap->counts->large[size_bin(size)], 1u);
        relief_note(heap);
    }
    return block;
}

/* Is it to be found out which site a request is of? If the program has named it; else of some requests, or, where a site's blocks
 * are kept in a way of their own, of all. */
ALWAYS_INLINE bool asks_site(const struct heap *heap, uintptr_t word, size_t size)
{
    if (heap == NULL)
        return false;
    if (UNLIKELY(word != 0 || load_relaxed(&large_sites_special) != 0))
        return true;
    return UNLIKELY(load_relaxed(&policy.learn) != LEARN_OFF) && site_is_turn(heap->counts->of[COUNT_LARGE], size);
}

static COLD uint32_t ask_site(const struct heap *heap, uintptr_t word, size_t size, struct os_frame from, uintptr_t caller)
{
    struct site_request request = {word, size, site_is_turn(heap->counts->of[COUNT_LARGE], size), caller, &from};
    return heap_events.site != NULL ? heap_events.site(&request) : SITE_NONE;
}

/* `word`: the site, as the program has named it, or 0. `caller`: to where the library's function returns. */
static ENTRANCE NOINLINE void *malloc_large(size_t size, size_t align, bool *zero, uintptr_t word, uintptr_t caller)
{
    const struct keeper *keeper = keeper_now();
    if (UNLIKELY(keeper != NULL)) {
        *zero = false;
        return door_malloc_kept(size, align, FAMILY_MALLOC);
    }
    void *block = NULL;
    struct heap *heap = enter_own();
    if (size <= PTRDIFF_MAX && align <= PTRDIFF_MAX / 2)
        if (heap != NULL || (load_acquire(&arena.base) != NULL && !fork_holds_any_lock())) {
            uint32_t site = SITE_NONE;
            if (UNLIKELY(asks_site(heap, word, size)))
                site = ask_site(heap, word, size, os_frame_here(), caller);
            block = large(heap, size, align, site, zero);
        }
    if (heap != NULL) {
        if (UNLIKELY(heap->view.budget < 0) && block != NULL)
            sample_large(heap, block, size, os_frame_here());
        tell_listener(heap, "malloc", block, size);
        leave(heap);
    }
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

ENTRANCE void *door_malloc_large(size_t size, size_t align, bool *zero)
{
    return malloc_large(size, align, zero, 0, RETURN_ADDRESS);
}

ENTRANCE void *door_malloc_at(size_t size, uintptr_t site)
{
    bool zero;
    return malloc_large(size, 1, &zero, site, RETURN_ADDRESS);
}

ALWAYS_INLINE void *malloc_as(size_t size, enum family family)
{
    bool zero;
    const struct keeper *keeper = keeper_now();
    if (UNLIKELY(keeper != NULL))
        return from_keeper(keeper, &(struct request){size, 1, family}, os_frame_here());
    if (UNLIKELY(size > SMALL_MAX))
        return malloc_large(size, 1, &zero, 0, RETURN_ADDRESS);
    bool unborn = view_is(VIEW_UNBORN);
    struct heap *heap = enter_own();
    if (UNLIKELY(heap == NULL))
        return small_without_heap(size);
    if (unborn) /* the caller charged the static view */
        charge(heap, size);
    void *block = UNLIKELY(heap->view.budget < 0) ? sample(heap, size, os_frame_here()) : NULL;
    if (LIKELY(block == NULL))
        block = small(heap, size);
    tell_listener(heap, "malloc", block, size);
    leave(heap);
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

ENTRANCE NOINLINE void *door_malloc(size_t size)
{
    return malloc_as(size, FAMILY_MALLOC);
}

ENTRANCE NOINLINE void *door_new(size_t size)
{
    return malloc_as(size, FAMILY_NEW);
}

ENTRANCE NOINLINE void *door_new_array(size_t size)
{
    return malloc_as(size, FAMILY_NEW_ARRAY);
}

/* What a block grows by was requested. */
static void *resize(struct heap *heap, struct large *block, size_t size)
{
    const void *before = block->base;
    size_t bytes = block->bytes;
    void *p = large_resize(block, size);
    if (p == NULL && limit_is_short_of(size - block->bytes)) {
        (void)relief_give_back(heap);
        p = large_resize(block, size);
    }
    if (heap != NULL) {
        if (p != NULL && block->bytes > bytes)
            charge(heap, block->bytes - bytes);
        relief_note(heap);
    }
    if (p != NULL && UNLIKELY(block->sample != NULL))
        profiler_now()->resized(block->sample, before, p, size);
    return p;
}

ENTRANCE void *door_resize_large(struct large *block, size_t size)
{
    struct heap *heap = enter_own();
    void *p = heap != NULL || !fork_holds_any_lock() ? resize(heap, block, size) : NULL;
    if (heap != NULL) {
        if (UNLIKELY(heap->view.budget < 0) && p != NULL)
            sample_large(heap, p, size, os_frame_here());
        tell_listener(heap, "realloc", p, size);
        leave(heap);
    }
    return p;
}

/* Whoever keeps blocks is told where the program has called the library. */
ALWAYS_INLINE void free_as(void *p, struct freeing how)
{
    struct os_frame here;
    if (p == NULL)
        return;
    if (UNLIKELY(keeper_now() != NULL)) {
        here = os_frame_here();
        how.from = &here;
    }
    struct heap *heap = enter_own();
    if (UNLIKELY(heap == NULL)) {
        route_without_heap(p, &how);
        return;
    }
    route_free(heap, p, &how);
    tell_listener(heap, "free", p, how.size);
    entry_leave(heap);
    if (UNLIKELY(control_is_asked()))
        serve_tools();
}

NOINLINE void door_free(void *p)
{
    free_as(p, (struct freeing){.family = FAMILY_MALLOC, .size = SIZE_UNKNOWN});
}

NOINLINE void door_free_as(void *p, struct freeing how)
{
    free_as(p, how);
}

static COLD size_t size_of_other(const void *p)
{
    size_t size;
    const struct keeper *keeper = keeper_now();
    if (keeper != NULL && keeper->size_of(p, &size))
        return size;
    if (heap_events.size_of_other == NULL || !heap_events.size_of_other(p, &size))
        report_pointer(FAULT_INVALID_POINTER, p);
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
    struct heap *heap = enter_own();
    if (heap == NULL)
        return p;
    void *to = settle(heap, p, bytes);
    leave(heap);
    return to;
}

size_t door_prewarm(size_t size, size_t count)
{
    struct heap *heap = size <= SMALL_MAX ? enter_own() : NULL;
    if (heap == NULL)
        return 0;
    unsigned class = size_class_of(size);
    magazine_widen(heap, class, count);
    size_t ready = magazine_count(heap, class) + shelf_room(heap, class);
    while (ready < count && shelf_prepare(heap, class))
        ready += size_classes[class].blocks;
    leave(heap);
    return min_size(ready, count);
}

void door_visit(void (*work)(void *argument), void *argument)
{
    struct heap *heap = enter_own();
    work(argument);
    if (heap != NULL)
        entry_leave(heap);
}

size_t door_purge(bool also_cached)
{
    struct heap *heap = enter_own();
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
