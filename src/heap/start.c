#include "heap/start.h"

#include <limits.h>
#include <pthread.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "heap/entry.h"
#include "heap/fork.h"
#include "heap/freeze.h"
#include "heap/keeper.h"
#include "heap/life.h"
#include "heap/purger.h"
#include "heap/route.h"
#include "heap/seal.h"
#include "heap/view.h"
#include "span/limit.h"

struct lock init_lock = LOCK_INITIALIZER(LOCK_INIT);
uint32_t start_done;
static pthread_key_t exit_key;
static bool have_key;

/* At once, in the first round of the thread's destructors: others that run later have the orphan heap. Were we
 * to wait for them, a thread whose first allocation is in a destructor could end before our turn. (Of the four
 * rounds that POSIX has at least, one that first allocates in the last still does: life_reclaim finds its heap.) */
static void thread_exit(void *unused)
{
    /* Its own word knows the heap. The key's value may be another's: of a second libc in the process (dlmopen), or of a program that
     * uses a key which it has not made. */
    struct heap *heap = view_load()->heap;
    (void)unused;
    if (heap == NULL || load_relaxed(&heap->tls) != &thread_view)
        return;
    limit_end_own_notice();
    if (heap->in_door != 0) {
        life_quarantine(heap);
        return;
    }
    heap->interrupt.depth = 0; /* a handler that ends its thread does not return */
    entry_enter(heap, view_load());
    if (heap->deferred_count > 0)
        route_deferred(heap);
    life_retire(heap);
    purger_consider(heap); /* its memory is others' now, who may never have a heartbeat again */
}

static bool start(void)
{
    size_class_init();
    if (HARDENED)
        seal_start();
    if (!arena_init())
        return false;
    if (!HARDENED) /* whose metadata lies behind guard pages, all of it */
        meta_give(view_statics.between, sizeof view_statics.between);
    have_key = pthread_key_create(&exit_key, thread_exit) == 0;
    return true;
}

/* glibc's, which pthread_atfork calls in the name of the library: its handlers would be gone once that was finalized at exit, while
 * destructors of other libraries may still fork. NULL: the process's own. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the name is glibc's. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library) __attribute__((weak));

void start_expects_forks(void)
{
    static uint32_t expected;
    if (exchange_acquire(&expected, 1u) != 0)
        return;
    if (__register_atfork != NULL)
        (void)__register_atfork(fork_prepare, fork_parent, fork_child, NULL);
    else
        (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static bool start_once(void)
{
    if (load_acquire(&start_done) != 0)
        return true;
    if (lock_is_mine(&init_lock))
        return false;
    bool first = false;
    lock_take(&init_lock);
    if (start_done == 0 && start()) {
        first = true;
        store_release(&start_done, 1u);
    }
    lock_drop(&init_lock);
    /* Outside the lock: registering may allocate, in libraries that are not glibc. */
    if (first)
        start_expects_forks();
    return load_acquire(&start_done) != 0; /* or another thread has, since the lock was dropped */
}

struct heap *start_thread(void)
{
    /* A signal handler may have been faster. */
    struct view *seen = view_load();
    do {
        if (load_relaxed(&seen->kind) != VIEW_UNBORN)
            return seen->heap;
        /* With a heap, others may write to the word too (freeze.c). */
    } while (!__atomic_compare_exchange_n(&thread_view, &seen, STATIC_VIEW(birth), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    struct heap *heap = start_once() ? life_birth(&thread_view) : NULL;
    if (heap == NULL) {
        store_relaxed(&thread_view, STATIC_VIEW(unborn));
        return NULL;
    }
    /* A thread that cannot tell us of its end keeps its heap for ever, and nobody writes to its word. This may
     * allocate: the heap is ready. */
    if (!have_key || pthread_setspecific(exit_key, heap) != 0) {
        lock_take(&heap->lock);
        store_relaxed(&heap->tls, NULL);
        lock_drop(&heap->lock);
    }
    purger_note_birth(heap);
    if (keeper_now() != NULL)
        freeze_show_twin(heap);
    return heap;
}
