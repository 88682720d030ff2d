#include "api/metrics.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "check/run.h"
#include "config/policy.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/profiler.h"
#include "heap/start.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "learn/learn.h"
#include "observe/profile_memory.h"
#include "observe/profile_sites.h"
#include "observe/profile_slabs.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/limit.h"
#include "span/shards.h"
#include "span/span.h"

#define KIND_OF(g)                                                                                                   \
    ((g) == METRIC_MEMORY || (g) == METRIC_PROFILE || (g) == METRIC_LEARNER ? METRIC_GAUGE : METRIC_COUNTER)

/* Rows of the table: a word; one in each element of an array; in each heap; among each heap's counts. */
#define WORD(g, n, word, a)                                                                                          \
    {.name = (n), .about = (a), .at = (uintptr_t)&(word), .scale = 1, .count = 1, .scope = METRIC_GLOBAL,            \
     .width = sizeof(word), .group = (g), .kind = KIND_OF(g)}
#define SCALED(g, n, array, field, s, a)                                                                             \
    {.name = (n), .about = (a), .at = (uintptr_t)&(array)[0].field, .scale = (s), .stride = sizeof((array)[0]),      \
     .count = sizeof(array) / sizeof((array)[0]), .scope = METRIC_GLOBAL, .width = sizeof((array)[0].field),         \
     .group = (g), .kind = KIND_OF(g)}
#define EACH(g, n, array, field, a) SCALED(g, n, array, field, 1, a)
#define IN_HEAP(g, n, field, s, a)                                                                                   \
    {.name = (n), .about = (a), .at = offsetof(struct heap, field), .scale = (s), .count = 1,                        \
    .scope = METRIC_HEAP, .width = sizeof(((struct heap *)0)->field), .group = (g), .kind = KIND_OF(g)}
#define COUNTED(n, which, a)                                                                                         \
    {.name = (n), .about = (a), .at = offsetof(struct heap_counts, of[which]), .scale = 1, .count = 1,               \
     .kind = METRIC_COUNTER, .scope = METRIC_COUNT, .width = 8, .group = METRIC_COUNTERS}
#define OF_CLASS(k, n, field, a)                                                                                     \
    {.name = (n), .about = (a), .at = offsetof(struct heap_counts, field), .scale = 1,                               \
     .stride = sizeof(((struct heap_counts *)0)->field[0]), .count = SIZE_CLASSES, .kind = (k),                      \
     .scope = METRIC_COUNT_CLASS, .width = sizeof(((struct heap_counts *)0)->field[0]), .group = METRIC_COUNTERS}
#define LEARNED(n, field, a)                                                                                          \
    WORD(METRIC_LEARNER, n, learn_shown.words[offsetof(struct learn_summary, field) / sizeof(uint64_t)], a)
#define LOCK(n, lock, a)                                                                                             \
    WORD(METRIC_LOCKS, n ".taken", (lock).taken, "how often it was taken: " a),                                      \
        WORD(METRIC_LOCKS, n ".waits", (lock).waits, "how often a thread had to wait for it"),                       \
        WORD(METRIC_LOCKS, n ".waited_ns", (lock).waited_ns, "how long, in sum, nanoseconds")

const struct metric metrics[] = {
    EACH(METRIC_MEMORY, "large_live_bytes", large_live, bytes, "live blocks of more than 32 KiB, whole pages"),
    EACH(METRIC_MEMORY, "large_live_blocks", large_live, blocks, "how many of them"),
    EACH(METRIC_MEMORY, "checked_live_bytes", run_live, bytes, "live blocks of check mode, as they were requested"),
    EACH(METRIC_MEMORY, "checked_live_blocks", run_live, blocks, "how many of them"),
    WORD(METRIC_MEMORY, "sampled_live_bytes", slabs_live.bytes, "live small blocks that the heap profiler has sampled"),
    WORD(METRIC_MEMORY, "sampled_live_blocks", slabs_live.blocks, "how many of them"),
    EACH(METRIC_MEMORY, "bigcache_bytes", bigcache_shards, bytes, "freed large blocks that are kept for the next requests"),
    SCALED(METRIC_MEMORY, "dirty_bytes", span_shards, dirty_units, UNIT_SIZE, "free units that still have their pages; given back by age"),
    WORD(METRIC_MEMORY, "metadata_bytes", meta_bytes, "the allocator's own tables, as far as they were used"),
    IN_HEAP(METRIC_MEMORY, "slab_bytes", units, UNIT_SIZE, "slabs of all size classes: live, cached and free blocks, and holes"),
    IN_HEAP(METRIC_MEMORY, "hole_bytes", hole_bytes, 1, "of slabs, pages without a block in use that have no memory: given back, or not used yet"),
    IN_HEAP(METRIC_MEMORY, "stock_bytes", stock_units, UNIT_SIZE, "free units that heaps keep by them for their next slabs"),
    IN_HEAP(METRIC_MEMORY, "stock_clean_bytes", stock_clean, UNIT_SIZE, "of them, those that have no memory yet"),
    EACH(METRIC_MEMORY, "untouched_bytes", large_live, untouched, "of large blocks, ends that nobody can use and that have no memory"),
    WORD(METRIC_MEMORY, "filled_bytes", huge_filled, "of what counts as without memory, what has some in huge pages"),
    WORD(METRIC_MEMORY, "charged_bytes", limit_bytes, "units in use, and free ones with their pages: at most so much of the range is in memory"),
    EACH(METRIC_MEMORY, "used_bytes", span_shards, used_bytes, "units in slabs, in stocks, and of large blocks, kept ones too"),
    WORD(METRIC_MEMORY, "usable_bytes", span_range.committed_bytes, "of the range, what may be written"),
    WORD(METRIC_MEMORY, "reserved_bytes", span_range.reserved_bytes, "the range: addresses, not memory"),
    WORD(METRIC_MEMORY, "soft_limit_bytes", policy.soft_limit, "beyond it memory is given back first; 0: not looked up yet"),
    WORD(METRIC_MEMORY, "hard_limit_bytes", policy.hard_limit, "beyond it requests fail"),

    EACH(METRIC_COUNTERS, "checked_requests", run_live, requests, "calls of malloc and its kin in check mode: exact"),
    COUNTED("served_by_mail", COUNT_BY_MAIL, "requests that found blocks that other threads had freed: no refill was needed"),
    COUNTED("served_by_current_slab", COUNT_BY_CURRENT, "refills by the slab that had served the last one"),
    COUNTED("served_by_partial_slab", COUNT_BY_PARTIAL, "refills by the fullest other slab, the current one being used up"),
    COUNTED("served_by_adopted_slab", COUNT_BY_ADOPTED, "refills by a slab of an ended thread, the heap having no room of its own"),
    COUNTED("served_by_new_slab", COUNT_BY_NEW, "refills by a new slab, no idle heap having room either"),
    COUNTED("not_served", COUNT_NOT_SERVED, "refills that found no memory at all"),
    COUNTED("units_from_stock", COUNT_FROM_STOCK, "slabs whose units the heap had by it"),
    EACH(METRIC_COUNTERS, "units_warm", span_shards, served[SPAN_WARM], "runs of units that still had their pages"),
    EACH(METRIC_COUNTERS, "units_partly", span_shards, served[SPAN_PARTLY], "runs of clean units in a superslab that is in use: no warm one fitted"),
    EACH(METRIC_COUNTERS, "units_empty", span_shards, served[SPAN_EMPTY], "runs in an unused superslab: none in use had room"),
    EACH(METRIC_COUNTERS, "units_new", span_shards, served[SPAN_NEW], "runs in a superslab that was never used before: there was no other"),
    EACH(METRIC_COUNTERS, "large_from_bigcache", bigcache_shards, served, "large blocks that a kept one has served"),
    COUNTED("large_blocks", COUNT_LARGE, "requests for large blocks"),
    COUNTED("large_frees", COUNT_LARGE_FREED, "large blocks freed"),
    COUNTED("flushed_blocks", COUNT_FLUSHED, "small blocks that left full magazines"),
    COUNTED("remote_sent_blocks", COUNT_SENT, "blocks of other heaps that were freed here, and sent"),
    COUNTED("remote_letters", COUNT_POSTED, "in how many letters"),
    COUNTED("remote_received_blocks", COUNT_RECEIVED, "blocks that came back from other threads"),
    COUNTED("remote_forwarded_blocks", COUNT_FORWARDED, "of them, those whose slab was another heap's by then"),
    COUNTED("other_frees", COUNT_OTHER_FREED, "frees of guarded, sampled and checked blocks"),
    COUNTED("deferred_frees", COUNT_DEFERRED, "frees by signal handlers that had interrupted the allocator"),
    COUNTED("heartbeats", COUNT_HEARTBEATS, "how often a thread has looked after what it caches"),
    COUNTED("trimmed_magazines", COUNT_TRIMMED, "magazines that were not used for a while, and gave everything back"),
    COUNTED("emptied_heaps", COUNT_EMPTIED, "heaps of sleeping or ended threads that others have emptied"),
    COUNTED("purged_hole_bytes", COUNT_HOLE_BYTES, "given back within slabs, in sum"),
    EACH(METRIC_COUNTERS, "purged_unit_bytes", span_shards, purged_bytes, "given back of free units, in sum"),
    OF_CLASS(METRIC_COUNTER, "refills", refills, "how often the magazine was empty"),
    OF_CLASS(METRIC_COUNTER, "flushes", flushes, "how often the magazine was full"),
    OF_CLASS(METRIC_GAUGE, "slabs", slabs, "slabs there are"),

    WORD(METRIC_OS, "mmap", os_calls[OS_MMAP], "calls"),
    WORD(METRIC_OS, "munmap", os_calls[OS_MUNMAP], "calls"),
    WORD(METRIC_OS, "mremap", os_calls[OS_MREMAP], "calls"),
    WORD(METRIC_OS, "mprotect", os_calls[OS_MPROTECT], "calls"),
    WORD(METRIC_OS, "madvise", os_calls[OS_MADVISE], "calls"),
    WORD(METRIC_OS, "membarrier", os_calls[OS_MEMBARRIER], "calls"),

    WORD(METRIC_PROFILE, "rate_bytes", policy.profile_bytes, "requested on average between two samples; 0: none are taken"),
    WORD(METRIC_PROFILE, "samples", profile_totals.allocated.count, "requests that were samples, since the profile began"),
    WORD(METRIC_PROFILE, "live_samples", profile_totals.live.count, "of them, those that live"),
    WORD(METRIC_PROFILE, "estimated_requests", profile_totals.requests, "calls of malloc and its kin since then: an estimate from the samples"),
    WORD(METRIC_PROFILE, "live_bytes", profile_totals.live_weight, "estimate of all that lives and was requested since"),
    WORD(METRIC_PROFILE, "peak_bytes", profile_totals.peak_weight, "the most that was"),
    WORD(METRIC_PROFILE, "dropped", profile_totals.dropped, "samples that could not be kept: the profiler's memory is full"),
    WORD(METRIC_PROFILE, "sites", profile_totals.sites, "different stacks and sizes"),
    WORD(METRIC_PROFILE, "memory_bytes", profile_own_bytes, "the profiler's own tables, less the stacks"),

    WORD(METRIC_LEARNER, "mode", policy_mode, "0 minimal, 1 fast, 2 balanced, 3 learning, 4 research"),
    WORD(METRIC_LEARNER, "learns", policy.learn, "0 off, 1 observe, 2 on"),
    LEARNED("state", state, "0 learns, 1 frozen, 2 canary, 3 rests"),
    LEARNED("epochs", epochs, "of which it has learned"),
    LEARNED("mode_cost", mode_cost, "of the allocator, with the mode's own values: ns for each MiB requested"),
    LEARNED("cost", cost, "the same with the best policy that is known"),
    LEARNED("saved_ppm", saved_ppm, "saved since it began, in millionths of the cost, all that was tried included; may be below 0"),
    LEARNED("arms", arms, "policies that compete"),
    LEARNED("best_rating", best_rating, "of the best of them, on Elo's scale"),
    LEARNED("best_deviation", best_deviation, "how sure that is: less is surer"),
    LEARNED("changes", changes, "values in which it differs from the mode"),
    LEARNED("matches", matches, "of two policies"),
    LEARNED("drifts", drifts, "how often the program changed"),
    LEARNED("canaries", canaries, "how often another policy was tried against the settled one"),
    LEARNED("rollbacks", rollbacks, "how often the best was taken back"),
    LEARNED("kills", kills, "how often learning was stopped because it did not pay"),

    EACH(METRIC_LOCKS, "span.taken", span_shards, lock.taken, "how often they were taken: superslabs and units"),
    EACH(METRIC_LOCKS, "span.waits", span_shards, lock.waits, "how often a thread had to wait"),
    EACH(METRIC_LOCKS, "span.waited_ns", span_shards, lock.waited_ns, "how long, in sum, nanoseconds"),
    LOCK("life", life_lock, "idle heaps"),
    LOCK("letters", letters_lock, "empty letters"),
    LOCK("profiler", profiler_lock, "what the heap profiler has counted"),
    LOCK("orphan", orphan_lock, "the heap of threads that have none"),
    LOCK("meta", meta_lock, "the allocator's own memory"),
    EACH(METRIC_LOCKS, "bigcache.taken", bigcache_shards, lock.taken, "how often they were taken: kept large blocks"),
    EACH(METRIC_LOCKS, "bigcache.waits", bigcache_shards, lock.waits, "how often a thread had to wait"),
    EACH(METRIC_LOCKS, "bigcache.waited_ns", bigcache_shards, lock.waited_ns, "how long, in sum, nanoseconds"),
    IN_HEAP(METRIC_LOCKS, "heap.taken", lock.taken, 1, "how often they were taken: a heap that somebody else works on"),
    IN_HEAP(METRIC_LOCKS, "heap.waits", lock.waits, 1, "how often a thread had to wait"),
    IN_HEAP(METRIC_LOCKS, "heap.waited_ns", lock.waited_ns, 1, "how long, in sum, nanoseconds"),
};

const size_t metric_count = sizeof metrics / sizeof metrics[0];

_Static_assert(sizeof(struct metric) == 48, "tools know this layout (heap/control.h)");

static uint64_t word_at(const struct metric *metric, const char *at)
{
    return metric->width == 4 ? load_relaxed((const uint32_t *)(const void *)at) : load_relaxed((const uint64_t *)(const void *)at);
}

static const char *start_of(const struct metric *metric, const struct heap *heap)
{
    switch (metric->scope) {
    case METRIC_GLOBAL:
        return (const char *)metric->at;
    case METRIC_HEAP:
    case METRIC_HEAP_CLASS:
        return (const char *)heap + metric->at;
    default:
        return (const char *)heap->counts + metric->at;
    }
}

uint64_t metric_value(const struct metric *metric, const struct heap *heap)
{
    const char *at = start_of(metric, heap);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < metric->count; i++)
        sum += word_at(metric, at + (size_t)i * metric->stride);
    return sum * metric->scale;
}

uint64_t metric_of_class(const struct metric *metric, const struct heap *heap, unsigned class)
{
    return word_at(metric, start_of(metric, heap) + (size_t)class * metric->stride) * metric->scale;
}

uint64_t metric_sum(const struct metric *metric)
{
    uint64_t sum = 0;
    if (metric->scope == METRIC_GLOBAL)
        return metric_value(metric, NULL);
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        sum += metric_value(metric, heap);
    return sum;
}
