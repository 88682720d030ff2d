#include "heap/purger.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/lock.h"
#include "config/policy.h"
#include "heap/freeze.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/shelf.h"
#include "heap/sleeper.h"
#include "heap/view.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "os/os.h"
#include "span/span.h"

/* Worth a thread. */
#define MUCH (16 * MIB)

/* So many heaps are many. */
enum { MANY_HEAPS = 64, LOOKS_A_BEAT = 16 };

/* The purger ends after so many looks in a row that found nothing; if something waits for its time, so many after that. */
enum { VAIN = 3, PERIOD_LEAST_MS = 100 };

enum { REFUSED_MS = 100, LARGE_LOOK_MS = 1000 };

static uint64_t refused_ms; /* when the purger did not start, the last time; 0: since it ran it was not */

/* What waited for its time when the purger last ended, and was not given back: like a heap's left_free no reason to start again. */
static size_t left_waiting;

/* For its time to be given back. */
static size_t waiting(void)
{
    return span_dirty_bytes() + bigcache_bytes();
}

static size_t beyond(size_t bytes, size_t left)
{
    return bytes > left ? bytes - left : 0;
}

/* Free blocks in slabs, and what magazines hold if they are full. So few heaps as are not many come to much only if one of them is
 * larger than this. */
static size_t could_give(const struct heap *heap)
{
    size_t bytes = load_relaxed(&heap->units) << UNIT_SHIFT;
    return bytes >= MUCH / MANY_HEAPS ? min_size(bytes, shelf_free_bytes(heap) + load_relaxed(&heap->capacity_bytes)) : 0;
}

/* Others' words are a heartbeat old: of each thread the last is from before it fell asleep. Where there are more heaps than one
 * heartbeat looks at, the next goes on. */
void purger_note_beat(struct heap *heap)
{
    store_relaxed(&heap->could_give, could_give(heap));
    if (heap->counted == NULL) {
        store_relaxed(&heap->others_gave, heap->others_give);
        store_relaxed(&heap->others_give, (size_t)0);
        heap->counted = life_heaps();
    }
    size_t bytes = heap->others_give;
    for (unsigned looks = 0; looks < LOOKS_A_BEAT && heap->counted != NULL; looks++, heap->counted = heap->counted->next)
        if (heap->counted != heap)
            bytes += beyond(load_relaxed(&heap->counted->could_give), load_relaxed(&heap->counted->left_free));
    store_relaxed(&heap->others_give, bytes);
}

/* What has gone since the purger left it, or is in use again, is not left: it may be free again one day. */
static COLD void note_gone(struct heap *heap)
{
    if (os_service_runs()) /* which notes for itself */
        return;
    store_relaxed(&left_waiting, min_size(load_relaxed(&left_waiting), waiting()));
    store_relaxed(&heap->left_free, min_size(load_relaxed(&heap->left_free), could_give(heap)));
}

static bool could_give_back_much(const struct heap *heap)
{
    size_t waits = beyond(waiting(), load_relaxed(&left_waiting));
    size_t others = max_size(load_relaxed(&heap->others_give), load_relaxed(&heap->others_gave));
    return waits + others + (load_relaxed(&heap->units) << UNIT_SHIFT) >= MUCH
           && waits + others + beyond(could_give(heap), load_relaxed(&heap->left_free)) >= MUCH;
}

/* Has the owner not been at its door since the last look? */
static bool has_been_away(struct heap *heap)
{
    uint32_t visits = load_relaxed(&heap->visits);
    bool away = visits == heap->visits_seen;
    heap->visits_seen = visits;
    return away;
}

/* Has another look emptied it, and nothing come since? Who only collects what was sent to it leaves its holes. */
static bool is_empty(struct heap *heap)
{
    return load_relaxed(&heap->frozen) == FREEZE_HOLES && load_relaxed(&heap->emptied)
           && load_relaxed(&heap->counts->of[COUNT_RECEIVED]) == load_relaxed(&heap->emptied_received) && !mail_waits(heap);
}

static void look_at(struct purger_look *look, struct heap *heap)
{
    if (!has_been_away(heap)) {
        store_relaxed(&heap->emptied, false);
        look->active++;
        look->active_free += could_give(heap);
    } else if (!is_empty(heap)) {
        look->given_back += sleeper_empty(heap);
    }
}

struct purger_look purger_look(void)
{
    struct purger_look look = {0};
    uint64_t now = clock_now_ms();
    orphan_tidy();
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        look_at(&look, heap);
    large_evict_old(now);
    look.given_back += span_purge_old(now, SIZE_MAX);
    return look;
}

/* Before a look: what it cannot give back is left. */
static void note_left(void)
{
    store_relaxed(&left_waiting, waiting());
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next) {
        size_t bytes = could_give(heap);
        store_relaxed(&heap->could_give, bytes);
        store_relaxed(&heap->left_free, bytes);
    }
}

/* Has so much been freed since that was noted, by threads that take the purger for one that will look again? */
static bool has_grown(void)
{
    size_t bytes = beyond(waiting(), load_relaxed(&left_waiting));
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        bytes += beyond(could_give(heap), load_relaxed(&heap->left_free));
    return bytes >= MUCH;
}

/* What threads that are awake hold has not been looked at, and they may fall asleep; where there are many of them they may hold much
 * between them, whatever one of them knows. */
static bool is_vain(const struct purger_look *look)
{
    return look->given_back == 0 && look->active < MANY_HEAPS && look->active_free < MUCH;
}

/* Large blocks are kept for a time of their own, which may be shorter. */
static void sleep_for(uint64_t ms)
{
    for (; ms > LARGE_LOOK_MS; ms -= LARGE_LOOK_MS) {
        os_sleep(LARGE_LOOK_MS);
        if (bigcache_bytes() > 0)
            large_evict_old(clock_now_ms());
    }
    os_sleep((uint32_t)ms);
}

static uint64_t period_ms(void)
{
    return max_size(load_relaxed(&policy.purge_ms), PERIOD_LEAST_MS);
}

/* How many looks in a row may find nothing. What waits is kept for its time, which may be many periods: a large block first for that of
 * its own, then its units for theirs. */
static uint64_t vain_most(void)
{
    uint64_t units_ms = period_ms() << load_relaxed(&policy.purge_doublings);
    uint64_t longest_ms = waiting() > 0 ? units_ms + bigcache_longest_ms() : 0;
    return VAIN + longest_ms / period_ms();
}

static void purger(void)
{
    store_relaxed(&thread_view, STATIC_VIEW(dead));
    for (uint64_t vain = 0; vain < vain_most(); vain++) {
        sleep_for(period_ms());
        bool grew = has_grown();
        note_left();
        struct purger_look look = purger_look();
        if (!is_vain(&look) || grew || has_grown())
            vain = 0;
    }
}

/* Where the kernel refuses a thread, for want of memory or by a rule, it is asked again after a while. Between the handlers of a fork
 * none is started: the child would forget it. */
static bool may_start(void)
{
    uint64_t refused = load_relaxed(&refused_ms);
    return policy.purger && !lock_passes() && !os_service_runs() && (refused == 0 || clock_has_passed(clock_now_ms(), refused, REFUSED_MS));
}

static void start(void)
{
    bool started = os_service_start(purger, "hakmem-purge", &thread_view);
    store_relaxed(&refused_ms, started ? 0 : clock_now_ms());
}

void purger_consider(struct heap *heap)
{
    if (UNLIKELY((load_relaxed(&left_waiting) | load_relaxed(&heap->left_free)) != 0))
        note_gone(heap);
    if (may_start() && could_give_back_much(heap))
        start();
}

void purger_note_birth(const struct heap *heap)
{
    if (heap->number % MANY_HEAPS == MANY_HEAPS - 1 && may_start())
        start();
}

/* What a purger that the child does not have would have given back later is not left. */
void purger_after_fork(void)
{
    if (os_service_runs()) {
        left_waiting = 0;
        for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
            heap->left_free = 0;
    }
    os_service_forget();
}
