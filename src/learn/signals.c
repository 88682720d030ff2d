#include "learn/signals.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "config/policy.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "large/bigcache.h"
#include "learn/prices.h"
#include "os/os.h"
#include "span/span.h"

/* A heap's counts at its last heartbeat. */
struct heap_seen {
    const struct heap *heap;
    uint32_t reign;
    uint64_t ms;
    uint64_t cached; /* of signals.cached */
    uint64_t requested;
    uint64_t of[HEAP_COUNTS];
    uint64_t refills[SIZE_CLASSES];
    uint64_t large[SIZE_BINS];
};

/* Its first heartbeat makes a place for it, or takes that of another heap, which is as if it had never been seen: where there are more
 * heaps than places, those are counted whose heartbeats come often. NULL: there is no memory. */
static struct heap_seen *seen_of(struct signals *signals, const struct heap *heap)
{
    struct heap_seen **place = &signals->heaps[heap->number % HEAPS_SEEN];
    if (*place == NULL)
        *place = meta_alloc(sizeof **place);
    struct heap_seen *seen = *place;
    if (seen != NULL && seen->heap != heap) {
        signals->cached -= seen->cached;
        *seen = (struct heap_seen){.heap = heap};
    }
    return seen;
}

/* Since the last look; *before is the count then. */
static uint64_t since(uint64_t *before, const uint64_t *count)
{
    uint64_t now = load_relaxed(count);
    uint64_t more = now - *before;
    *before = now;
    return more;
}

static uint64_t refill_ns(const uint64_t more[HEAP_COUNTS])
{
    uint64_t of_other_slabs = more[COUNT_BY_ADOPTED] + more[COUNT_BY_NEW];
    uint64_t refills = more[COUNT_BY_CURRENT] + more[COUNT_BY_PARTIAL] + of_other_slabs;
    return refills * PRICE_REFILL + of_other_slabs * PRICE_NEW_SLAB + more[COUNT_FLUSHED] * PRICE_FLUSHED_BLOCK;
}

static uint64_t remote_ns(const uint64_t more[HEAP_COUNTS])
{
    return (more[COUNT_SENT] + more[COUNT_RECEIVED]) * PRICE_REMOTE_BLOCK + more[COUNT_POSTED] * PRICE_LETTER;
}

static void see_sizes(struct epoch *sum, struct heap_seen *seen, const struct heap_counts *counts)
{
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        sum->refills[i] += (uint32_t)since(&seen->refills[i], &counts->refills[i]);
    for (unsigned i = 0; i < SIZE_BINS; i++)
        sum->large[i] += (uint32_t)since(&seen->large[i], &counts->large[i]);
}

static void see(struct epoch *sum, struct heap_seen *seen, const struct heap *heap)
{
    uint64_t more[HEAP_COUNTS];
    uint64_t requested = heap_requested(heap);
    for (unsigned i = 0; i < HEAP_COUNTS; i++)
        more[i] = since(&seen->of[i], &heap->counts->of[i]);
    sum->requested += requested - seen->requested;
    seen->requested = requested;
    sum->ns[COST_REFILLS] += refill_ns(more);
    sum->ns[COST_REMOTE] += remote_ns(more);
    sum->ns[COST_LARGE] += more[COUNT_LARGE] * PRICE_LARGE;
    sum->purged += more[COUNT_HOLE_BYTES];
    if (sum->ns[COST_REFILLS] + sum->ns[COST_LARGE] != 0)
        see_sizes(sum, seen, heap->counts);
}

static void look_at_memory(struct signals *signals, uint64_t now_ms)
{
    uint64_t ms = now_ms - signals->looked_ms;
    size_t kept = bigcache_bytes();
    signals->looked_ms = now_ms;
    signals->sum.kept_most = max_size(signals->sum.kept_most, kept);
    if (ms == 0)
        return;
    signals->sum.held_ms[COST_CACHED] += signals->cached * ms;
    signals->sum.held_ms[COST_KEPT] += kept * ms;
    signals->sum.held_ms[COST_DIRTY] += span_dirty_bytes() * ms;
}

/* Of what was requested from `last_ms` to `now_ms`, the part that falls into the epoch. */
static uint64_t since_begin(const struct signals *signals, uint64_t requested, uint64_t last_ms, uint64_t now_ms)
{
    if (last_ms >= signals->began_ms)
        return requested;
    return (uint64_t)((double)requested * (double)(now_ms - signals->began_ms) / (double)(now_ms - last_ms));
}

/* In this reign: what was done since the heap was last seen began before it. */
static NOINLINE void see_first(struct signals *signals, struct heap_seen *seen, const struct heap *heap, uint64_t now_ms)
{
    struct epoch before = {.ms = 0};
    see(&before, seen, heap);
    signals->sum.heaps++;
    if (seen->ms != 0 && now_ms != signals->began_ms)
        signals->straddled += since_begin(signals, before.requested, seen->ms, now_ms);
}

void signals_beat(struct signals *signals, const struct heap *heap, uint64_t now_ms)
{
    struct heap_seen *seen = seen_of(signals, heap);
    look_at_memory(signals, now_ms);
    if (seen == NULL || (seen->ms == now_ms && seen->reign == signals->reign))
        return;
    if (seen->reign != signals->reign)
        see_first(signals, seen, heap, now_ms);
    else
        see(&signals->sum, seen, heap);
    seen->reign = signals->reign;
    seen->ms = now_ms;
    signals->cached += heap->capacity_bytes - seen->cached;
    seen->cached = heap->capacity_bytes;
}

static uint64_t waits_of(const struct lock *lock)
{
    return load_relaxed(&lock->waits);
}

static struct signals_shared read_shared(void)
{
    struct os_usage usage = os_usage();
    struct signals_shared shared = {.faults = usage.faults, .work_ns = usage.work_ns};
    for (unsigned i = 0; i < OS_CALLS; i++)
        shared.calls += load_relaxed(&os_calls[i]);
    struct span_stats span;
    span_look(&span);
    for (unsigned i = 0; i < SPAN_STAGES; i++)
        shared.runs += span.served[i];
    shared.purged = span.purged_bytes;
    shared.waits = span.waits + waits_of(&life_lock) + waits_of(&letters_lock) + waits_of(&meta_lock);
    for (unsigned i = 0; i < SHARDS; i++)
        shared.waits += waits_of(&bigcache_shards[i].lock);
    return shared;
}

/* The magazines of a heap whose thread has ended hold nothing, or will when it is cleaned, and there is no heartbeat to say so. The sum is
 * made anew: a fork may have come between a heap's part and it. */
static void sum_up_cached(struct signals *signals)
{
    signals->cached = 0;
    for (unsigned i = 0; i < HEAPS_SEEN; i++) {
        struct heap_seen *seen = signals->heaps[i];
        if (seen == NULL)
            continue;
        if (seen->heap != NULL && load_relaxed(&seen->heap->tls) == NULL)
            seen->cached = 0;
        signals->cached += seen->cached;
    }
}

void signals_begin(struct signals *signals, bool is_other_policy, uint64_t now_ms)
{
    signals->reign += is_other_policy ? 1 : 0;
    signals->began_ms = signals->looked_ms = now_ms;
    signals->is_halved = false;
    signals->straddled = 0;
    sum_up_cached(signals);
    signals->sum = (struct epoch){.heaps = is_other_policy ? 0 : signals->sum.heaps};
    signals->at_begin = read_shared();
}

void signals_halve(struct signals *signals)
{
    signals->is_halved = true;
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        signals->half_refills[i] = signals->sum.refills[i];
    for (unsigned i = 0; i < SIZE_BINS; i++)
        signals->half_large[i] = signals->sum.large[i];
}

static bool has_changed(const struct signals *signals)
{
    uint32_t refills[SIZE_CLASSES];
    uint32_t large[SIZE_BINS];
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        refills[i] = signals->sum.refills[i] - signals->half_refills[i];
    for (unsigned i = 0; i < SIZE_BINS; i++)
        large[i] = signals->sum.large[i] - signals->half_large[i];
    struct mix first = mix_of(signals->half_refills, signals->half_large);
    struct mix second = mix_of(refills, large);
    return signals->is_halved && mix_differs(&first, &second);
}

/* The process's costs are of all that its heaps requested; what is compared is cost by what was requested as it counts. */
static uint64_t counted_part(const struct signals *signals, uint64_t ns)
{
    double requested = (double)signals->sum.requested;
    double all = requested + (double)signals->straddled;
    return signals->straddled == 0 ? ns : (uint64_t)((double)ns * requested / all);
}

/* What a MiB held for a second costs, for bytes times ms; without overflow up to 64 GiB for a day. */
static uint64_t held_ns(uint64_t byte_ms)
{
    return (byte_ms >> 20) * load_relaxed(&policy.memory_price) / 1000;
}

void signals_end(struct signals *signals, uint64_t now_ms, uint64_t start_ms, struct epoch *epoch)
{
    const struct signals_shared *before = &signals->at_begin;
    struct signals_shared now = read_shared();
    look_at_memory(signals, now_ms);
    *epoch = signals->sum;
    epoch->end_ms = now_ms - start_ms;
    epoch->ms = now_ms - signals->began_ms;
    epoch->work_ns = now.work_ns - before->work_ns;
    epoch->purged += now.purged - before->purged;
    uint64_t runs_ns = (now.runs - before->runs) * PRICE_UNITS;
    uint64_t purge_ns = epoch->purged / PRICED_PAGE_BYTES * PRICE_PURGED_PAGE;
    uint64_t waits = (uint32_t)(now.waits - before->waits); /* sums of words of 32 bits */
    epoch->ns[COST_LARGE] += counted_part(signals, runs_ns);
    epoch->ns[COST_CALLS] = counted_part(signals, (now.calls - before->calls) * PRICE_CALL + purge_ns);
    epoch->ns[COST_FAULTS] = counted_part(signals, (now.faults - before->faults) * PRICE_FAULT);
    epoch->ns[COST_WAITS] = counted_part(signals, waits * PRICE_WAIT);
    for (unsigned i = COST_CACHED; i <= COST_DIRTY; i++)
        epoch->ns[i] = counted_part(signals, held_ns(epoch->held_ms[i]));
    epoch->changed = has_changed(signals);
}
