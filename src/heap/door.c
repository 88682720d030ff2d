#include "heap/door.h"

#include <errno.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/fail.h"
#include "config/policy.h"
#include "heap/entry.h"
#include "heap/events.h"
#include "heap/fork.h"
#include "heap/heartbeat.h"
#include "heap/interrupt.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/relief.h"
#include "heap/report.h"
#include "heap/shelf.h"
#include "heap/sleeper.h"
#include "heap/start.h"
#include "heap/stock.h"
#include "heap/view.h"
#include "large/large.h"
#include "span/limit.h"
#include "span/span.h"

enum { DEFERRED_MOST = sizeof((struct heap *)0)->deferred / sizeof(void *) };

static void free_deferred(struct heap *heap);

/* The calling thread's heap, its door entered; NULL if it has none to use now. */
static struct heap *enter_own(void)
{
    const struct view *seen = view_load();
    struct heap *heap = seen->heap;
    if (UNLIKELY(heap == NULL)) {
        if (seen->kind != VIEW_UNBORN || (heap = start_thread()) == NULL)
            return NULL;
        seen = view_load();
    }
    if (UNLIKELY(heap->in_door != 0))
        return NULL;
    store_relaxed(&heap->visits, heap->visits + 1);
    entry_enter(heap, seen);
    if (UNLIKELY(heap->deferred_count > 0))
        free_deferred(heap);
    return heap;
}

bool door_open(void)
{
    if (view_load()->kind == VIEW_UNBORN)
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
static COLD void leave_with_heartbeat(struct heap *heap)
{
    struct limit_notice notice;
    heartbeat(heap);
    bool tell = relief_at_heartbeat(&notice);
    entry_leave(heap);
    if (tell)
        relief_tell(&notice);
}

/* Leaves the door after a request for memory. */
static void leave(struct heap *heap)
{
    if (UNLIKELY(heap->view.budget < 0) && !interrupt_holds_magazines(heap))
        leave_with_heartbeat(heap);
    else
        entry_leave(heap);
}

/* A program that only frees has heartbeats too; one that requests as much as it frees has those of its requests. */
static void beat_if_much_was_freed(struct heap *heap)
{
    if (UNLIKELY(heap->freed / 2 > policy.heartbeat_bytes) && !interrupt_holds_magazines(heap))
        heartbeat(heap);
}

static void *small(struct heap *heap, size_t size)
{
    void *block = magazine_pop(heap, size_class_of(size));
    if (UNLIKELY(block == NULL)) {
        (void)relief_give_back(heap);
        block = magazine_pop(heap, size_class_of(size));
    }
    return block;
}

static COLD void *sample(struct heap *heap, size_t size)
{
    return heap_events.sample != NULL ? heap_events.sample(heap, size) : NULL;
}

static void *from_orphan(size_t size)
{
    /* Before the start the table says class 0 for everything. */
    if (load_acquire(&arena.base) == NULL)
        return NULL;
    void *block = orphan_malloc(size_class_of(size));
    if (block == NULL && !fork_holds_any_lock()) {
        (void)relief_give_back(NULL);
        block = orphan_malloc(size_class_of(size));
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

NOINLINE void *door_malloc(size_t size)
{
    bool zero;
    if (UNLIKELY(size > SMALL_MAX))
        return door_malloc_large(size, 1, &zero);
    bool unborn = view_load()->kind == VIEW_UNBORN;
    struct heap *heap = enter_own();
    if (UNLIKELY(heap == NULL))
        return small_without_heap(size);
    if (unborn) /* the caller charged the static view */
        charge(heap, size);
    void *block = UNLIKELY(heap->view.budget < 0) ? sample(heap, size) : NULL;
    if (LIKELY(block == NULL))
        block = small(heap, size);
    leave(heap);
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

static void *large(struct heap *heap, size_t size, size_t align, bool *zero)
{
    void *block = large_alloc(size, align, zero);
    if (block == NULL && limit_is_short_of(size)) {
        (void)relief_give_back(heap);
        block = large_alloc(size, align, zero);
    }
    if (heap != NULL && block != NULL) {
        charge(heap, size);
        relief_note(heap);
    }
    return block;
}

void *door_malloc_large(size_t size, size_t align, bool *zero)
{
    void *block = NULL;
    struct heap *heap = enter_own();
    if (size <= PTRDIFF_MAX && align <= PTRDIFF_MAX / 2)
        if (heap != NULL || (load_acquire(&arena.base) != NULL && !fork_holds_any_lock()))
            block = large(heap, size, align, zero);
    if (heap != NULL)
        leave(heap);
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

static void *resize(struct heap *heap, struct large *block, size_t size)
{
    void *p = large_resize(block, size);
    if (p == NULL && limit_is_short_of(size - block->bytes)) {
        (void)relief_give_back(heap);
        p = large_resize(block, size);
    }
    if (heap != NULL)
        relief_note(heap);
    return p;
}

void *door_resize_large(struct large *block, size_t size)
{
    struct heap *heap = enter_own();
    void *p = heap != NULL || !fork_holds_any_lock() ? resize(heap, block, size) : NULL;
    if (heap != NULL)
        leave(heap);
    return p;
}

/* What it means to free a pointer with this tag, which is not that of a live block. */
static const char *fault_of(uintptr_t tag)
{
    return tag == TAG_LARGE_KEPT || tag == TAG_LARGE_GONE ? FAULT_DOUBLE_FREE : FAULT_INVALID_FREE;
}

/* What no tag explains. */
static COLD void free_other(uintptr_t tag, void *p)
{
    if (heap_events.free_other == NULL || !heap_events.free_other(p))
        report_pointer(fault_of(tag), p);
}

static void free_large(struct heap *heap, void *p)
{
    size_t bytes;
    switch (large_free(p, &bytes)) {
    case LARGE_FINE:
        break;
    case LARGE_NOT_A_BLOCK:
        report_pointer(FAULT_INVALID_FREE, p);
    case LARGE_DOUBLE_FREE:
        report_pointer(FAULT_DOUBLE_FREE, p);
    }
    if (heap != NULL) {
        heap->freed += bytes;
        beat_if_much_was_freed(heap);
    }
}

static void free_own(struct heap *heap, unsigned class, void *p)
{
    if (magazine_is_top(heap, class, p))
        report_pointer(FAULT_DOUBLE_FREE, p);
    if (!slab_holds(arena_span(p), p))
        report_pointer(FAULT_INVALID_FREE, p);
    magazine_push(heap, class, p);
    beat_if_much_was_freed(heap);
}

/* Magazines are typed by class, not by owner: without memory for a letter, ours may keep the block. A full one
 * loses it: a leak of one block, in a process that has not 512 bytes. */
static void send(struct heap *heap, uintptr_t tag, void *p)
{
    if (!mail_send(heap, mail_owner(tag), p))
        (void)magazine_keep(heap, tag % SIZE_CLASSES, p);
    if (UNLIKELY(heap->piled != NULL)) {
        sleeper_collect(heap->piled);
        heap->piled = NULL;
    }
}

static void route(struct heap *heap, void *p)
{
    uintptr_t tag = arena_tag(p);
    uintptr_t class = tag ^ (uintptr_t)heap;
    if (class < SIZE_CLASSES)
        free_own(heap, (unsigned)class, p);
    else if (tag >= TAG_KINDS)
        send(heap, tag, p);
    else if (tag == TAG_LARGE)
        free_large(heap, p);
    else
        free_other(tag, p);
}

static void free_deferred(struct heap *heap)
{
    /* Handlers may append while this runs; the count goes back to 0 only if none did since it was read. */
    uint32_t done = 0;
    uint32_t seen = load_relaxed(&heap->deferred_count);
    do {
        for (; done < seen; done++)
            route(heap, heap->deferred[done]);
    } while (!__atomic_compare_exchange_n(&heap->deferred_count, &seen, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* A signal handler interrupted the door: keep the block until the next visit. False: no more room. */
static COLD bool defer(struct heap *heap, void *p)
{
    uint32_t at = load_relaxed(&heap->deferred_count);
    do {
        if (at == DEFERRED_MOST)
            return false;
    } while (!__atomic_compare_exchange_n(&heap->deferred_count, &at, at + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    heap->deferred[at] = p;
    return true;
}

static COLD void free_without_heap(void *p)
{
    uintptr_t tag = arena_tag(p);
    struct heap *interrupted = view_load()->heap;
    if (tag < TAG_KINDS && tag != TAG_LARGE) {
        free_other(tag, p);
        return;
    }
    if (interrupted != NULL && defer(interrupted, p))
        return;
    /* A handler that frees more than that while its thread holds a lock leaks the rest. */
    if (tag != TAG_LARGE)
        (void)orphan_free(p);
    else if (!fork_holds_any_lock())
        free_large(NULL, p);
}

NOINLINE void door_free(void *p)
{
    if (p == NULL)
        return;
    struct heap *heap = enter_own();
    if (UNLIKELY(heap == NULL)) {
        free_without_heap(p);
        return;
    }
    route(heap, p);
    entry_leave(heap);
}

static COLD size_t size_of_other(const void *p)
{
    size_t size;
    if (heap_events.size_of_other == NULL || !heap_events.size_of_other(p, &size))
        report_pointer(FAULT_INVALID_POINTER, p);
    return size;
}

size_t door_usable_size(const void *p)
{
    uintptr_t tag = arena_tag(p);
    const struct heap *heap = view_load()->heap;
    uintptr_t class = tag ^ (uintptr_t)heap;
    if (heap != NULL && class < SIZE_CLASSES && magazine_is_top(heap, (unsigned)class, p))
        report_pointer(FAULT_USE_AFTER_FREE, p);
    if (tag >= TAG_KINDS && slab_holds(arena_span(p), p))
        return size_classes[tag % SIZE_CLASSES].size;
    const struct large *block = large_find(p);
    return block != NULL ? block->bytes : size_of_other(p);
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
