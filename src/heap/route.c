#include "heap/route.h"

#include <stdint.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "config/policy.h"
#include "heap/events.h"
#include "heap/fork.h"
#include "heap/heartbeat.h"
#include "heap/interrupt.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/profiler.h"
#include "heap/report.h"
#include "heap/seal.h"
#include "heap/shelf.h"
#include "heap/sleeper.h"
#include "heap/view.h"
#include "large/large.h"
#include "large/site.h"

enum { DEFERRED_MOST = sizeof((struct heap *)0)->deferred / sizeof(void *) };

/* A program that only frees has heartbeats too; one that requests as much as it frees has those of its requests. */
static void beat_if_much_was_freed(struct heap *heap)
{
    if (UNLIKELY(heap->freed / 2 > load_relaxed(&policy.heartbeat_bytes)) && !interrupt_holds_magazines(heap))
        heartbeat(heap);
}

/* What it means to free a pointer with this tag, which is not that of a live block. */
static const char *fault_of(uintptr_t tag)
{
    return tag == TAG_LARGE_KEPT || tag == TAG_LARGE_GONE ? FAULT_DOUBLE_FREE : FAULT_INVALID_FREE;
}

/* What no tag explains. */
static COLD void free_other(uintptr_t tag, void *p, const struct freeing *how)
{
    if (tag == TAG_SAMPLED) {
        profiler_now()->put(p);
        return;
    }
    const struct keeper *keeper = keeper_now();
    if (keeper != NULL && keeper->free(p, how))
        return;
    heap_events_free_other *others = load_acquire(&heap_events.free_other);
    if (others == NULL || !others(p, how))
        report_pointer(fault_of(tag), p);
}

static COLD void keep_for(void *p, uintptr_t word)
{
    struct large *block = large_find(p);
    uint32_t site = block != NULL && heap_events.site != NULL ? heap_events.site(&(struct site_request){.word = word}) : SITE_NONE;
    if (site != SITE_NONE)
        block->kept_for = site;
}

void route_large(struct heap *heap, void *p)
{
    struct large_freed freed;
    switch (large_free(p, heap_large_live(heap), &freed)) {
    case LARGE_FINE:
        break;
    case LARGE_NOT_A_BLOCK:
        report_pointer(FAULT_INVALID_FREE, p);
    case LARGE_DOUBLE_FREE:
        report_pointer(FAULT_DOUBLE_FREE, p);
    case LARGE_OVERRUN:
        report_pointer(FAULT_OVERFLOW, p);
    }
    if (UNLIKELY(freed.sample != NULL))
        profiler_now()->freed(freed.sample, p);
    if (heap != NULL) {
        heap->freed += freed.bytes;
        tally(heap, COUNT_LARGE_FREED);
        beat_if_much_was_freed(heap);
    }
}

static void free_large(struct heap *heap, void *p, const struct freeing *how)
{
    if (UNLIKELY(how->site != 0))
        keep_for(p, how->site);
    route_large(heap, p);
}

void route_own(struct heap *heap, unsigned class, void *p)
{
    if (magazine_is_top(heap, class, p))
        report_pointer(FAULT_DOUBLE_FREE, p);
    if (!slab_holds(arena_span(p), p))
        report_pointer(FAULT_INVALID_FREE, p);
    const struct keeper *keeper = keeper_now();
    bool has_bytes = !HARDENED || class != ZERO_CLASS;
    if (UNLIKELY(keeper != NULL || !has_bytes)) {
        if (has_bytes)
            keeper->poison(p, size_classes[class].size);
        (void)magazine_give_back(heap, class, p); /* the slab may have been given away before the heap was opened again */
    } else {
        magazine_push(heap, class, p);
    }
    beat_if_much_was_freed(heap);
}

/* Magazines are typed by class, not by owner: without memory for a letter, ours may keep the block. A full one
 * loses it: a leak of one block, in a process that has not 512 bytes. */
static void send(struct heap *heap, uintptr_t tag, void *p)
{
    if (!mail_send(heap, mail_owner(tag), p) && !interrupt_holds_magazines(heap))
        (void)magazine_keep(heap, tag % SIZE_CLASSES, p);
    beat_if_much_was_freed(heap); /* a thread may do nothing but free what others have allocated */
    if (UNLIKELY(heap->piled != NULL)) {
        sleeper_collect(heap->piled);
        heap->piled = NULL;
    }
}

/* Who says more than was asked for may mean another block. Less is not always wrong: realloc may have left room. */
static COLD void verify_size(uintptr_t tag, const void *p, size_t size)
{
    const struct large *block = large_find(p);
    size_t usable = SIZE_UNKNOWN;
    if (arena_is_slab(tag))
        usable = ((const struct slab *)arena_span(p))->stride;
    else if (block != NULL)
        usable = block->bytes;
    if (size > usable)
        report_pointer(FAULT_WRONG_SIZE, p);
    if (HARDENED && block != NULL && size != usable)
        report_pointer(FAULT_OTHER_SIZE, p);
}

void route_free(struct heap *heap, void *p, const struct freeing *how)
{
    uintptr_t tag = arena_tag(p);
    uintptr_t class = tag ^ (uintptr_t)heap;
    if (UNLIKELY(how->size != SIZE_UNKNOWN))
        verify_size(tag, p, how->size);
    if (class < SIZE_CLASSES) {
        route_own(heap, (unsigned)class, p);
    } else if (tag >= TAG_KINDS) {
        send(heap, tag, p);
    } else if (tag == TAG_LARGE) {
        free_large(heap, p, how);
    } else {
        tally(heap, COUNT_OTHER_FREED);
        free_other(tag, p, how);
    }
}

/* A place may be empty in a heap that a fork's child has inherited: the handler that had taken it is gone. */
static void do_deferred(struct heap *heap, uint32_t place)
{
    static const struct freeing unknown = {.family = FAMILY_UNKNOWN, .size = SIZE_UNKNOWN};
    void *p = heap->deferred[place];
    heap->deferred[place] = NULL;
    if (p != NULL)
        route_free(heap, p, &unknown);
}

void route_deferred(struct heap *heap)
{
    /* Handlers may append while this runs; the count goes back to 0 only if none did since it was read. */
    uint32_t done = 0;
    uint32_t seen = load_relaxed(&heap->deferred_count);
    do {
        owner_add(&heap->counts->of[COUNT_DEFERRED], seen - done);
        for (; done < seen; done++)
            do_deferred(heap, done);
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

/* Is a lock wanted that this thread may hold already, or a heap? */
static bool must_wait(uintptr_t tag)
{
    return tag >= TAG_KINDS || tag == TAG_LARGE || ((tag == TAG_CHECKED || tag == TAG_SAMPLED) && fork_holds_any_lock());
}

COLD void route_without_heap(void *p, const struct freeing *how)
{
    uintptr_t tag = arena_tag(p);
    struct heap *interrupted = view_load()->heap;
    if (!must_wait(tag)) {
        free_other(tag, p, how);
        return;
    }
    if (interrupted != NULL && defer(interrupted, p))
        return;
    /* A handler that frees more than that while its thread holds a lock leaks the rest. */
    if (tag >= TAG_KINDS)
        (void)orphan_free(p);
    else if (tag == TAG_LARGE && !fork_holds_any_lock())
        free_large(NULL, p, how);
}
