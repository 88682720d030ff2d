/* What is given back: the free units of superslabs that may hold pages. When: decay.h. */
#include "span/purge.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/probe.h"
#include "base/thread.h"
#include "config/policy.h"
#include "os/os.h"
#include "span/decay.h"
#include "span/huge.h"
#include "span/limit.h"
#include "span/shards.h"
#include "span/span.h"

/* Threads' words are as far apart at least. */
enum { MARK_STEP = 64 };

ALWAYS_INLINE void take_out(struct span_shard *shard, struct superslab *s)
{
    list_remove(&shard->dirty_queue, &s->age);
    s->queued = false;
}

ALWAYS_INLINE void put_last(struct span_shard *shard, struct superslab *s, uint64_t now_ms)
{
    list_push_back(&shard->dirty_queue, &s->age);
    s->queued = true;
    s->freed_ms = now_ms;
}

void purge_note_dirty(struct superslab *s, bits128 units, uint64_t now_ms)
{
    struct span_shard *shard = shard_of(s);
    if (s->queued)
        take_out(shard, s);
    put_last(shard, s, now_ms);
    superslab_set_dirty(s, s->dirty | units);
}

void purge_note_taken(const struct superslab *s, bits128 units)
{
    bits128 clean = units & ~s->dirty;
    if (s->purged_ms != 0 && clean != 0 && decay_is_regret(clock_now_ms(), s->purged_ms, load_relaxed(&policy.purge_ms)))
        shard_of(s)->decay.regretted += (size_t)count_ones128(clean) << UNIT_SHIFT;
}

/* Gives back the pages of the units in `mask`, which the caller has marked used; returns the mask of those
 * that were. No lock is held: madvise is slow. */
static bits128 purge_units(const struct superslab *s, bits128 mask)
{
    return os_purge_pieces(superslab_base(superslab_index(s)), mask, UNIT_SHIFT);
}

/* A huge page holds units that were never written, too. */
static bits128 may_hold_pages(const struct superslab *s)
{
    return policy.huge == HUGE_ON ? ~(bits128)0 : s->dirty;
}

/* So many units of a huge superslab must be free for it to be split. */
enum split {
    SPLIT_ANY = 0,
    SPLIT_SPARSE = SUPERSLAB_UNITS / HUGE_WHOLE_PART + 1,
    SPLIT_NONE = SUPERSLAB_UNITS + 1
};

/* Free units of a huge page; SPLIT_NONE: of none. */
static unsigned huge_free_units(const struct superslab *s)
{
    return s->huge ? count_ones128(~s->used) : SPLIT_NONE;
}

/* Of a huge page of which so little is free it is not worth to look at it again before it has waited anew; nor at all, before a unit is
 * freed, if none is free that holds pages. */
static void pass_over(struct span_shard *shard, struct superslab *s)
{
    take_out(shard, s);
    if ((s->dirty & ~s->used) != 0)
        put_last(shard, s, clock_now_ms());
}

/* So many superslabs of the queue are looked at; by age the next look goes on. Of huge ones of which little is free, who comes often (no
 * one may be split) passes over fewer: each time a part of them comes to the end of the queue. */
enum { LOOKS_MOST = 4096, PASSED_OVER_OFTEN = 32 };

/* The first superslab of the shard's queue that nobody is purging, and that may be split, if it was freed into before `before_ms`. */
static struct superslab *next_to_purge(struct span_shard *shard, uint64_t before_ms, enum split split)
{
    struct list_node *next;
    unsigned looks = LOOKS_MOST;
    unsigned more = split == SPLIT_NONE ? PASSED_OVER_OFTEN : LOOKS_MOST;
    for (struct list_node *node = shard->dirty_queue.first; node != NULL && looks > 0 && more > 0; node = next, looks--) {
        struct superslab *s = LIST_ENTRY(node, struct superslab, age);
        next = node->next;
        if (s->freed_ms >= before_ms)
            return NULL;
        if (s->purging != 0)
            continue;
        unsigned free = huge_free_units(s);
        if (free < (unsigned)split) { /* it stays whole */
            if (free < SPLIT_SPARSE) {
                pass_over(shard, s);
                more--;
            }
            continue;
        }
        return s;
    }
    return NULL;
}

/* Last of all: the superslab may go to the pool. */
static void end_purge(struct superslab *s)
{
    bits128 purged = s->purging;
    list_remove(&shard_of(s)->in_purge, &s->purge);
    s->purging = 0;
    superslab_set_used(s, s->used & ~purged);
}

/* Of thread_self, what fits. */
static uint32_t thread_mark(void)
{
    return (uint32_t)(thread_self() / MARK_STEP);
}

static void end_purges_of_others(struct span_shard *shard)
{
    struct list_node *next;
    for (struct list_node *node = shard->in_purge.first; node != NULL; node = next) {
        struct superslab *s = LIST_ENTRY(node, struct superslab, purge);
        next = node->next;
        if (s->purger == thread_mark())
            continue;
        if (!s->queued) { /* the purger has taken it out */
            list_push_front(&shard->dirty_queue, &s->age); /* it was the oldest */
            s->queued = true;
        }
        end_purge(s);
    }
}

void span_after_fork(void)
{
    limit_after_fork();
    huge_after_fork();
    for (unsigned i = 0; i < shards_count(); i++)
        end_purges_of_others(&span_shards[i]);
}

/* Gives the pages of these free units back, without the shard's lock, which is held before and after. `now_ms`: units that are taken
 * again soon after it were given back too early; 0: their age was not asked. Returns the bytes. */
static size_t give_back(struct span_shard *shard, struct superslab *s, bits128 units, uint64_t now_ms)
{
    s->purging = units;
    s->purger = thread_mark();
    superslab_set_used(s, s->used | units);
    list_push_back(&shard->in_purge, &s->purge);
    huge_split(s); /* first, lest the kernel fill the holes again */
    lock_drop(&shard->lock);
    bits128 done = purge_units(s, units);
    struct span_shard *now = shards_lock_of(s); /* to another it may have come meanwhile */
    /* What the kernel refused (locked memory, for one) stays dirty until the next free in here. */
    limit_discharge((size_t)count_ones128(done & s->dirty) << UNIT_SHIFT);
    superslab_set_dirty(s, s->dirty & ~done);
    if (now_ms != 0)
        s->purged_ms = now_ms;
    end_purge(s);
    size_t bytes = (size_t)count_ones128(done) << UNIT_SHIFT;
    PROBE1(hakmem, purge, bytes);
    if (now != shard) {
        lock_drop(&now->lock);
        lock_take(&shard->lock);
    }
    return bytes;
}

/* By age at `now_ms`: what is taken again soon was given back too early; who gives back at any age, 0, has not judged it. */
static size_t purge_before(struct span_shard *shard, uint64_t before_ms, uint64_t now_ms, size_t most)
{
    size_t bytes = 0;
    struct superslab *s;
    while (bytes < most && (s = next_to_purge(shard, before_ms, now_ms != 0 ? SPLIT_SPARSE : SPLIT_ANY)) != NULL) {
        bits128 units = may_hold_pages(s) & ~s->used;
        take_out(shard, s);
        if (units != 0) /* else all are in use again; and it must not be on the list for nothing, where nobody sees it */
            bytes += give_back(shard, s, units, now_ms);
    }
    owner_add(&shard->purged_bytes, bytes);
    return bytes;
}

/* The lowest `most` of these units. */
static bits128 lowest_units(bits128 units, size_t most)
{
    while (count_ones128(units) > most)
        units &= ~((bits128)1 << highest_one128(units));
    return units;
}

static size_t purge_some(struct span_shard *shard, size_t most)
{
    size_t bytes = 0;
    struct superslab *s;
    while (bytes < most && (s = next_to_purge(shard, UINT64_MAX, SPLIT_NONE)) != NULL) {
        bits128 units = s->dirty & ~s->used;
        bits128 some = lowest_units(units, divide_up(most - bytes, UNIT_SIZE));
        if (some == units) /* else it stays where it is: older ones, which were passed by, may stand before it */
            take_out(shard, s);
        size_t given = some != 0 ? give_back(shard, s, some, 0) : 0;
        if (some != 0 && given == 0) { /* refused: it would be the next again, and the next time */
            if (shard_of(s) == shard && s->queued)
                pass_over(shard, s);
            break;
        }
        bytes += given;
    }
    owner_add(&shard->purged_bytes, bytes);
    return bytes;
}

size_t span_purge_old(uint64_t now_ms, size_t most)
{
    size_t delay_ms = load_relaxed(&policy.purge_ms);
    uint32_t doublings = (uint32_t)load_relaxed(&policy.purge_doublings);
    size_t bytes = 0;
    for (unsigned i = shards_count(); i-- > 0 && bytes < most;) {
        struct span_shard *shard = &span_shards[i];
        lock_take(&shard->lock);
        decay_learn(&shard->decay, now_ms, delay_ms, doublings);
        size_t here = purge_before(shard, decay_horizon(&shard->decay, now_ms, delay_ms), now_ms, most - bytes);
        shard->decay.given_back += here;
        lock_drop(&shard->lock);
        bytes += here;
    }
    return bytes;
}

/* The pool last: what becomes wholly free meanwhile goes there. What others free from now on waits for its time. */
size_t span_purge_all(void)
{
    size_t bytes = 0;
    uint64_t before_ms = clock_now_ms() + 1;
    for (unsigned i = shards_count(); i-- > 0;) {
        struct span_shard *shard = &span_shards[i];
        lock_take(&shard->lock);
        bytes += purge_before(shard, before_ms, 0, SIZE_MAX);
        lock_drop(&shard->lock);
    }
    return bytes;
}

size_t span_purge_some(size_t most)
{
    size_t bytes = 0;
    for (unsigned i = shards_count(); i-- > 0 && bytes < most;) {
        struct span_shard *shard = &span_shards[i];
        if (load_relaxed(&shard->dirty_units) == 0)
            continue;
        lock_take(&shard->lock);
        bytes += purge_some(shard, most - bytes);
        lock_drop(&shard->lock);
    }
    return bytes;
}
