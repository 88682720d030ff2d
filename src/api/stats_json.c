#include "api/stats_json.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "api/learner_json.h"
#include "api/metrics.h"
#include "api/sites_json.h"
#include "api/stats.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "heap/life.h"
#include "learn/decisions.h"
#include "os/os.h"

static uint64_t started_ms;

static void number(struct out *out, const char *name, uint64_t value)
{
    out_print(out, ",\"%s\":%lu", name, (unsigned long)value);
}

static bool is_of_class(const struct metric *metric)
{
    return metric->scope == METRIC_HEAP_CLASS || metric->scope == METRIC_COUNT_CLASS;
}

static bool is_of_heap(const struct metric *metric)
{
    return metric->scope == METRIC_HEAP || metric->scope == METRIC_COUNT;
}

static uint64_t sum_of(const char *name)
{
    for (size_t i = 0; i < metric_count; i++)
        if (strcmp(metric_texts[i].name, name) == 0)
            return metric_sum(&metrics[i]);
    return 0;
}

/* Of memory, words that are added up while others change them may sum up to less than nothing. One word alone may be a limit, and as high
 * as numbers go. */
static uint64_t sound_sum(const struct metric *metric)
{
    uint64_t sum = metric_sum(metric);
    bool is_gauge = metric->group == METRIC_MEMORY && metric->count > 1;
    return is_gauge ? above_zero((ptrdiff_t)sum) : sum;
}

static void sums_of_group(struct out *out, enum metric_group group)
{
    for (size_t i = 0; i < metric_count; i++)
        if (metrics[i].group == group && !is_of_class(&metrics[i]))
            number(out, metric_texts[i].name, sound_sum(&metrics[i]));
}

/* As stats_read has it, from the same words as tools outside. */
static uint64_t held_bytes(void)
{
    uint64_t bound = sum_of("charged_bytes") + sum_of("metadata_bytes") + sum_of("filled_bytes");
    uint64_t absent = sum_of("hole_bytes") + sum_of("stock_clean_bytes") + sum_of("untouched_bytes") + sum_of("fence_bytes");
    return bound > absent ? bound - absent : 0;
}

static void memory(struct out *out)
{
    ptrdiff_t live = 0;
    uint64_t cached = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        struct class_use use = class_use_sum(class);
        live += class_use_live(&use) * size_class_bytes(class);
        cached += use.cached * size_class_bytes(class);
    }
    uint64_t slabs = sum_of("slab_bytes");
    uint64_t used = above_zero(live) + cached + sum_of("hole_bytes");
    uint64_t metadata = sum_of("metadata_bytes");
    out_print(out, ",\"memory\":{\"small_live_bytes\":%lu", (unsigned long)above_zero(live));
    number(out, "cached_bytes", cached);
    number(out, "slab_free_bytes", slabs > used ? slabs - used : 0);
    number(out, "held_bytes", held_bytes());
    number(out, "committed_bytes", sum_of("usable_bytes") + metadata);
    number(out, "purged_bytes", sum_of("purged_unit_bytes") + sum_of("purged_hole_bytes"));
    sums_of_group(out, METRIC_MEMORY);
    out_print(out, "}");
}

static void counters(struct out *out)
{
    uint64_t requested = 0;
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        requested += heap_requested(heap);
    out_print(out, ",\"counters\":{\"requested_bytes\":%lu", (unsigned long)requested);
    sums_of_group(out, METRIC_COUNTERS);
    out_print(out, "}");
}

static void row_of_class(struct out *out, unsigned class, const char *before)
{
    struct class_use use = class_use_sum(class);
    out_print(out, "%s{\"class\":%u,\"size\":%u", before, class, size_class_bytes(class));
    number(out, "live_blocks", above_zero(class_use_live(&use)));
    number(out, "cached_blocks", use.cached);
    number(out, "slab_free_blocks", use.in_slabs);
    for (size_t i = 0; i < metric_count; i++) {
        uint64_t sum = 0;
        if (!is_of_class(&metrics[i]))
            continue;
        for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
            sum += metric_of_class(&metrics[i], heap, class);
        number(out, metric_texts[i].name, sum);
    }
    out_print(out, "}");
}

static bool is_in_use(unsigned class)
{
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        if (load_relaxed(&heap->counts->slabs[class]) > 0 || load_relaxed(&heap->counts->refills[class]) > 0)
            return true;
    return false;
}

static void classes(struct out *out)
{
    const char *before = "";
    out_print(out, ",\"classes\":[");
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        if (!is_in_use(i))
            continue;
        row_of_class(out, i, before);
        before = ",";
    }
    out_print(out, "]");
}

static void row_of_heap(struct out *out, const struct heap *heap, const char *before)
{
    ptrdiff_t live = 0;
    uint64_t cached = 0;
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        struct class_use use = {0};
        class_use_add(&use, heap, i);
        live += class_use_live(&use) * size_class_bytes(i);
        cached += use.cached * size_class_bytes(i);
    }
    bool has_thread = load_relaxed(&heap->tls) != NULL;
    out_print(out, "%s{\"heap\":%u,\"thread\":%d", before, heap->number, has_thread ? load_relaxed(&heap->thread.number) : 0);
    number(out, "requested_bytes", heap_requested(heap));
    number(out, "live_bytes", above_zero(live));
    number(out, "cached_bytes", cached);
    for (size_t i = 0; i < metric_count; i++)
        if (is_of_heap(&metrics[i]) && metrics[i].group <= METRIC_COUNTERS)
            number(out, metric_texts[i].name, metric_value(&metrics[i], heap));
    out_print(out, "}");
}

static void threads(struct out *out)
{
    const char *before = "";
    out_print(out, ",\"threads\":[");
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next) {
        row_of_heap(out, heap, before);
        before = ",";
    }
    out_print(out, "]");
}

/* The rows of a lock are neighbours in the table, named "LOCK.WHAT". */
static void locks(struct out *out)
{
    size_t length = 0;
    const char *last = NULL;
    out_print(out, ",\"locks\":[");
    for (size_t i = 0; i < metric_count; i++) {
        const char *dot = strchr(metric_texts[i].name, '.');
        if (metrics[i].group != METRIC_LOCKS || dot == NULL)
            continue;
        if (last == NULL || strncmp(last, metric_texts[i].name, length + 1) != 0) {
            char name[32] = {0};
            length = (size_t)(dot - metric_texts[i].name);
            memcpy(name, metric_texts[i].name, length < sizeof name ? length : sizeof name - 1);
            out_print(out, "%s{\"name\":\"%s\"", last == NULL ? "" : "},", name);
        }
        last = metric_texts[i].name;
        number(out, dot + 1, metric_sum(&metrics[i]));
    }
    out_print(out, "%s]", last != NULL ? "}" : "");
}

static void system_calls(struct out *out)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < OS_CALLS; i++)
        all += load_relaxed(&os_calls[i]);
    out_print(out, ",\"os\":{\"calls\":%lu", (unsigned long)all);
    sums_of_group(out, METRIC_OS);
    out_print(out, "}");
}

/* Of the whole process. */
static void faults(struct out *out)
{
    struct os_usage used = os_usage();
    out_print(out, ",\"faults\":{\"minor\":%lu,\"major\":%lu}", used.faults, used.major_faults);
}

static void profile(struct out *out)
{
    out_print(out, ",\"profile\":{\"runs\":%d", load_relaxed(&policy.profile_bytes) != 0);
    sums_of_group(out, METRIC_PROFILE);
    out_print(out, "}");
}

void stats_begin(void)
{
    started_ms = clock_now_ms();
}

void stats_json(struct out *out, size_t decisions)
{
    out_print(out, "{\"schema\":\"hakmem-stats\",\"version\":1,\"library\":\"%s\",\"pid\":%d", hak_version(), (int)getpid());
    uint64_t now = clock_unix_ms();
    uint64_t age = clock_now_ms() - started_ms;
    number(out, "unix_ms", now);
    number(out, "uptime_ms", age);
    memory(out);
    counters(out);
    classes(out);
    threads(out);
    locks(out);
    system_calls(out);
    faults(out);
    profile(out);
    learner_json(out, decisions, now - age);
    if (decisions == DECISIONS_KEPT) /* not of a series */
        sites_json(out);
    out_print(out, "}\n");
}
