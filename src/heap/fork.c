#include "heap/fork.h"

#include "arena/meta.h"
#include "base/alone.h"
#include "base/atomic.h"
#include "base/claim.h"
#include "heap/events.h"
#include "heap/freeze.h"
#include "heap/keeper.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/profiler.h"
#include "heap/purger.h"
#include "heap/start.h"
#include "heap/view.h"
#include "large/bigcache.h"
#include "os/os.h"
#include "span/span.h"

/* In rank order; the locks of all heaps come between the two. */
static struct lock *const before_heaps[] = {&init_lock, &orphan_lock, &life_lock};

enum { BEFORE = sizeof before_heaps / sizeof before_heaps[0] };

static bool keepers_lock_is_mine(void)
{
    const struct keeper *keeper = keeper_now();
    return keeper != NULL && keeper->lock_is_mine();
}

static bool after_heaps_is_mine(void)
{
    return keepers_lock_is_mine() || lock_is_mine(&profiler_lock) || lock_is_mine(&letters_lock) || bigcache_lock_is_mine()
           || span_lock_is_mine() || lock_is_mine(&meta_lock);
}

/* While a fork is under way. Between its handlers the thread that forks may set one. */
static const struct keeper *locked_keeper;

static void take_after_heaps(void)
{
    locked_keeper = keeper_now();
    if (locked_keeper != NULL)
        locked_keeper->lock();
    lock_take(&profiler_lock);
    lock_take(&letters_lock);
    bigcache_lock_all();
    span_lock_all();
    lock_take(&meta_lock);
}

static void drop_after_heaps(void)
{
    lock_drop(&meta_lock);
    span_unlock_all();
    bigcache_unlock_all();
    lock_drop(&letters_lock);
    lock_drop(&profiler_lock);
    if (locked_keeper != NULL)
        locked_keeper->unlock();
}

bool fork_holds_any_lock(void)
{
    if (lock_passes())
        return lock_is_passed();
    bool mine = after_heaps_is_mine();
    for (int i = 0; i < BEFORE; i++)
        mine |= lock_is_mine(before_heaps[i]);
    if (lock_may_be_of_heap())
        for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
            mine |= lock_is_mine(&heap->lock);
    return mine;
}

/* One that ended unseen may have had its word where this thread's is now. */
static bool is_other_threads(const struct heap *heap)
{
    return heap->tls != NULL && heap != view_load()->heap;
}

/* While locks are taken and dropped one by one, a signal handler's allocation must come to the orphan heap,
 * which sees the locks: this thread's heap counts as inside its door. False: it is already, or there is none. */
static bool enter_door(void)
{
    struct heap *own = view_load()->heap;
    if (own == NULL || own->in_door != 0)
        return false;
    store_relaxed(&own->in_door, 1u);
    compiler_fence();
    return true;
}

static void leave_door(bool entered)
{
    compiler_fence();
    if (entered)
        store_relaxed(&view_load()->heap->in_door, 0u);
}

/* Forks by signal handlers that came between fork_prepare and the end of that fork, in the parent: nothing was done for them, and nothing
 * is to be undone. */
static unsigned nested;

void fork_prepare(void)
{
    if (load_acquire(&start_done) == 0) /* nobody has allocated yet */
        return;
    if (lock_passes()) {
        nested++;
        return;
    }
    /* From a signal handler that interrupted the allocator: such a child may exec, no more (POSIX). */
    if (fork_holds_any_lock())
        return;
    if (!alone())
        os_prepare_barrier();
    os_streams_lock();
    if (view_is(VIEW_UNBORN))
        (void)start_thread(); /* without a heap a signal handler's allocation would want one, and the life lock */
    bool entered = enter_door();
    for (int i = 0; i < BEFORE; i++)
        lock_take(before_heaps[i]);
    bool others = false;
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next) {
        lock_take_sibling(&heap->lock);
        if (is_other_threads(heap) && life_reclaim_locked(heap))
            continue;
        if (is_other_threads(heap)) {
            (void)freeze_close(heap); /* if not, the child sees it */
            others = true;
        }
    }
    /* Without a barrier a hot operation may be half seen by the child only on machines that reorder stores,
     * and there the page-table work of fork is one. */
    if (others)
        (void)os_barrier();
    take_after_heaps();
    lock_pass_begin();
    leave_door(entered);
}

static void drop_before_heaps(void)
{
    for (int i = BEFORE; i-- > 0;)
        lock_drop(before_heaps[i]);
}

/* A thread that forks first and allocates then, in a handler, has a heap that fork_prepare did not see. */
static void drop_heap(struct heap *heap)
{
    if (lock_is_mine(&heap->lock))
        lock_drop(&heap->lock);
}

void fork_parent(void)
{
    if (!lock_passes())
        return;
    if (nested > 0) {
        nested--;
        return;
    }
    bool entered = enter_door();
    lock_pass_end();
    drop_after_heaps();
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        drop_heap(heap);
    drop_before_heaps();
    leave_door(entered);
    os_streams_unlock();
}

/* The heap of a thread that the child does not have. */
static void bury(struct heap *heap)
{
    bool has_holes = heap->frozen == FREEZE_HOLES;
    bool usable = heap->in_door != DOOR_INSIDE && freeze_is_closed(heap);
    heap->tls = NULL;
    heap->interrupt.depth = 0;
    heap->frozen = FREEZE_NONE;
    if (!usable) {
        heap->quarantined = true;
        return;
    }
    if (has_holes)
        magazine_compact(heap);
    life_idle_locked(heap);
}

/* Of a nested fork too: if its handler returns, the fork that it interrupted goes on in this child, which has no other threads. But if it
 * has interrupted the allocator, this child may exec, no more, or go on with that as the parent does. */
void fork_child(void)
{
    claim_forked();
    if (!lock_passes())
        return;
    if (nested > 0 && lock_is_passed()) {
        nested--;
        return;
    }
    nested = 0;
    bool entered = enter_door();
    lock_take(&meta_lock); /* which passes: a signal handler sees that the lists are half linked */
    span_after_fork();
    purger_after_fork();
    lock_drop(&meta_lock);
    lock_pass_end();
    drop_after_heaps();
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next) {
        if (is_other_threads(heap))
            bury(heap);
        else if (heap->tls != NULL)
            heap->thread = os_thread();
        else
            life_inherit_locked(heap);
        drop_heap(heap);
    }
    drop_before_heaps();
    lock_after_fork();
    leave_door(entered);
    os_streams_after_fork();
    if (heap_events.forked != NULL)
        heap_events.forked();
}
