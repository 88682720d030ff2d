#include "api/metrics.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "check/run.h"
#include "config/policy.h"
#include "heap/absent.h"
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

/* Objects of which metrics are words. A row says which, and where in it: so the loader has these few addresses to relocate in each
 * process, and the rows are constants. */
#define BASES(BASE)                                                                                                  \
    BASE(absent_fences) BASE(bigcache_shards) BASE(huge_filled) BASE(large_live) BASE(learn_shown) BASE(letters_lock) \
    BASE(life_lock) BASE(limit_bytes) BASE(meta_bytes) BASE(meta_lock) BASE(orphan_lock) BASE(os_calls) BASE(policy) \
    BASE(policy_mode) BASE(profile_own_bytes) BASE(profile_totals) BASE(profiler_lock) BASE(run_live)                \
    BASE(slabs_live) BASE(span_range) BASE(span_shards)

#define NUMBER_OF(object) BASE_##object,
#define ADDRESS_OF(object) &(object),
enum { BASES(NUMBER_OF) };
const void *const metric_bases[] = {BASES(ADDRESS_OF)};
const size_t metric_base_count = sizeof metric_bases / sizeof metric_bases[0];

/* Rows of metrics_table.h: a word; one in an object; one of an array; one in each element of an array; in each heap; among each heap's
 * counts. Of ROW each table takes what it holds. */
#define WITHIN(g, n, object, offset, size, a)                                                                        \
    ROW(n, a, .base = BASE_##object, .at = (offset), .scale = 1, .count = 1, .scope = METRIC_GLOBAL, .width = (size), \
        .group = (g), .kind = KIND_OF(g))
#define WORD(g, n, object, a) WITHIN(g, n, object, 0, sizeof(object), a)
#define FIELD(g, n, object, field, a)                                                                                \
    WITHIN(g, n, object, offsetof(__typeof__(object), field), sizeof((object).field), a)
#define ELEMENT(g, n, array, i, a) WITHIN(g, n, array, (i) * sizeof((array)[0]), sizeof((array)[0]), a)
#define SCALED(g, n, array, field, s, a)                                                                             \
    ROW(n, a, .base = BASE_##array, .at = offsetof(__typeof__((array)[0]), field), .scale = (s),                     \
        .stride = sizeof((array)[0]), .count = sizeof(array) / sizeof((array)[0]), .scope = METRIC_GLOBAL,           \
        .width = sizeof((array)[0].field), .group = (g), .kind = KIND_OF(g))
#define EACH(g, n, array, field, a) SCALED(g, n, array, field, 1, a)
#define IN_HEAP(g, n, field, s, a)                                                                                   \
    ROW(n, a, .at = offsetof(struct heap, field), .scale = (s), .count = 1, .scope = METRIC_HEAP,                    \
        .width = sizeof(((struct heap *)0)->field), .group = (g), .kind = KIND_OF(g))
#define COUNTED(n, which, a)                                                                                         \
    ROW(n, a, .at = offsetof(struct heap_counts, of[which]), .scale = 1, .count = 1, .kind = METRIC_COUNTER,         \
        .scope = METRIC_COUNT, .width = 8, .group = METRIC_COUNTERS)
#define OF_CLASS(k, n, field, a)                                                                                     \
    ROW(n, a, .at = offsetof(struct heap_counts, field), .scale = 1,                                                 \
        .stride = sizeof(((struct heap_counts *)0)->field[0]), .count = SIZE_CLASSES, .kind = (k),                   \
        .scope = METRIC_COUNT_CLASS, .width = sizeof(((struct heap_counts *)0)->field[0]), .group = METRIC_COUNTERS)
#define LEARNED(n, field, a)                                                                                         \
    FIELD(METRIC_LEARNER, n, learn_shown, words[offsetof(struct learn_summary, field) / sizeof(uint64_t)], a)
#define LOCK(n, lock, a)                                                                                             \
    FIELD(METRIC_LOCKS, n ".taken", lock, taken, "how often it was taken: " a)                                       \
    FIELD(METRIC_LOCKS, n ".waits", lock, waits, "how often a thread had to wait for it")                            \
    FIELD(METRIC_LOCKS, n ".waited_ns", lock, waited_ns, "how long, in sum, nanoseconds")

/* A text that just fits without its zero would be taken as well. */
#define ROW(n, a, ...) _Static_assert(sizeof(n) <= METRIC_NAME && sizeof(a) <= METRIC_ABOUT, n " does not fit into its text");
#include "api/metrics_table.h"
#undef ROW

#define ROW(n, a, ...) {.name = n, .about = a},
const struct metric_text metric_texts[] = {
#include "api/metrics_table.h"
};
#undef ROW

#define ROW(n, a, ...) {__VA_ARGS__},
const struct metric metrics[] = {
#include "api/metrics_table.h"
};
#undef ROW

const size_t metric_count = sizeof metrics / sizeof metrics[0];

_Static_assert(sizeof(struct metric) == 32 && sizeof(struct metric_text) == 120, "tools know this layout (heap/control.h)");

static uint64_t word_at(const struct metric *metric, const char *at)
{
    return metric->width == 4 ? load_relaxed((const uint32_t *)(const void *)at) : load_relaxed((const uint64_t *)(const void *)at);
}

static const char *start_of(const struct metric *metric, const struct heap *heap)
{
    switch (metric->scope) {
    case METRIC_GLOBAL:
        return (const char *)metric_bases[metric->base] + metric->at;
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
