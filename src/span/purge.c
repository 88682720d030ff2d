/* What is given back: the free units of superslabs that may hold pages. When: decay.h. */
#include "span/purge.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/probe.h"
#include "config/policy.h"
#include "os/os.h"
#include "span/decay.h"
#include "span/huge.h"
#include "span/limit.h"
#include "span/span.h"

/* Superslabs into which dirty units were freed since they were last purged, the longest ago first. */
static struct list dirty_queue;

/* Superslabs whose free units some thread is giving back now, without the lock. */
static struct list in_purge;

static struct decay decay;

void purge_note_dirty(struct superslab *s, bits128 units, uint64_t now_ms)
{
    if (s->queued)
        list_remove(&dirty_queue, &s->age);
    list_push_back(&dirty_queue, &s->age);
    s->queued = true;
    superslab_set_dirty(s, s->dirty | units);
    s->freed_ms = now_ms;
}

void purge_note_taken(const struct superslab *s, bits128 units)
{
    bits128 clean = units & ~s->dirty;
    if (s->purged_ms != 0 && clean != 0 && decay_is_regret(clock_now_ms(), s->purged_ms, load_relaxed(&policy.purge_ms)))
        decay.regretted += (size_t)count_ones128(clean) << UNIT_SHIFT;
}

/* Gives back the pages of the units in `mask`, which the caller has marked used; returns the mask of those
 * that were. The span lock is not held: madvise is slow. */
static bits128 purge_units(const struct superslab *s, bits128 mask)
{
    return os_purge_pieces(superslab_base(superslab_index(s)), mask, UNIT_SHIFT);
}

/* A huge page holds units that were never written, too. */
static bits128 may_hold_pages(const struct superslab *s)
{
    return policy.huge == HUGE_ON ? ~(bits128)0 : s->dirty;
}

/* Takes the superslab at the head of the queue out, if it was freed into before `before_ms`. */
static struct superslab *next_to_purge(uint64_t before_ms)
{
    if (dirty_queue.first == NULL)
        return NULL;
    struct superslab *s = LIST_ENTRY(dirty_queue.first, struct superslab, age);
    if (s->freed_ms >= before_ms || s->purging != 0)
        return NULL;
    list_remove(&dirty_queue, &s->age);
    s->queued = false;
    return s;
}

static void end_purge(struct superslab *s)
{
    list_remove(&in_purge, &s->purge);
    superslab_set_used(s, s->used & ~s->purging);
    s->purging = 0;
}

void span_after_fork(void)
{
    limit_after_fork();
    huge_after_fork();
    while (in_purge.first != NULL)
        end_purge(LIST_ENTRY(in_purge.first, struct superslab, purge));
}

static size_t purge_before(uint64_t before_ms)
{
    size_t bytes = 0;
    struct superslab *s;
    while ((s = next_to_purge(before_ms)) != NULL) {
        s->purging = may_hold_pages(s) & ~s->used;
        if (s->purging == 0)
            continue; /* all in use again; and it must not be on the list for nothing, where nobody sees it */
        superslab_set_used(s, s->used | s->purging);
        list_push_back(&in_purge, &s->purge);
        lock_drop(&span_lock);
        bits128 done = purge_units(s, s->purging);
        lock_take(&span_lock);
        huge_split(s);
        /* What the kernel refused (locked memory, for one) stays dirty until the next free in here. */
        limit_discharge((size_t)count_ones128(done & s->dirty) << UNIT_SHIFT);
        superslab_set_dirty(s, s->dirty & ~done);
        s->purged_ms = clock_now_ms();
        end_purge(s);
        PROBE1(hakmem, purge, (size_t)count_ones128(done) << UNIT_SHIFT);
        bytes += (size_t)count_ones128(done) << UNIT_SHIFT;
    }
    owner_add(&span_totals.purged_bytes, bytes);
    return bytes;
}

size_t span_purge_old(uint64_t now_ms)
{
    size_t delay_ms = load_relaxed(&policy.purge_ms);
    lock_take(&span_lock);
    decay_learn(&decay, now_ms, delay_ms, (uint32_t)load_relaxed(&policy.purge_doublings));
    size_t bytes = purge_before(decay_horizon(&decay, now_ms, delay_ms));
    decay.given_back += bytes;
    lock_drop(&span_lock);
    return bytes;
}

size_t span_purge_all(void)
{
    lock_take(&span_lock);
    size_t bytes = purge_before(UINT64_MAX);
    lock_drop(&span_lock);
    return bytes;
}
