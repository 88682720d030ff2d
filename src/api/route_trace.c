#include "api/route_trace.h"

#include <string.h>

#include "api/metrics.h"
#include "base/atomic.h"
#include "base/fail.h"
#include "base/fmt.h"
#include "config/policy.h"
#include "heap/events.h"
#include "heap/keeper.h"

enum { VISITS = 64, TEXT_MOST = 400 };

/* What a heap's counts were when its thread came to the door. Of heaps that would share a place one goes unseen. */
static struct visit {
    struct heap *heap; /* NULL: nobody's */
    struct heap_counts before;
} visits[VISITS];

static uint32_t written;

static struct visit *visit_of(const struct heap *heap)
{
    return &visits[heap->number % VISITS];
}

static void entered(struct heap *heap)
{
    struct visit *visit = visit_of(heap);
    struct heap *nobody = NULL;
    if (load_relaxed(&written) >= policy.traced)
        return;
    if (load_relaxed(&visit->heap) != heap
        && !__atomic_compare_exchange_n(&visit->heap, &nobody, heap, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    visit->before = *heap->counts;
}

static uint64_t word_of(const struct metric *metric, const struct heap_counts *counts, uint32_t i)
{
    const char *at = (const char *)counts + metric->at + (size_t)i * metric->stride;
    return metric->width == 4 ? *(const uint32_t *)(const void *)at : *(const uint64_t *)(const void *)at;
}

/* "NAME CHANGE", for each count that has changed. */
static void describe(char text[TEXT_MOST], const struct heap_counts *before, const struct heap_counts *after)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < metric_count; i++) {
        const struct metric *m = &metrics[i];
        int64_t change = 0;
        if (m->scope != METRIC_COUNT && m->scope != METRIC_COUNT_CLASS)
            continue;
        for (uint32_t word = 0; word < m->count; word++)
            change += (int64_t)(word_of(m, after, word) - word_of(m, before, word));
        if (change != 0)
            length += fmt_print(text + length, TEXT_MOST - length, "%s %s %ld", length > 0 ? "," : ":", metric_texts[i].name,
                                (long)change);
    }
}

struct done {
    const char *operation;
    const void *p;
    size_t size;
};

static void write_route(uint32_t number, const struct heap *heap, const struct heap_counts *before, const struct done *done)
{
    char text[TEXT_MOST];
    char bytes[32] = "";
    describe(text, before, heap->counts);
    if (done->size != SIZE_UNKNOWN)
        (void)fmt_print(bytes, sizeof bytes, " of %zu bytes", done->size);
    note("hakmem: route %u: %s %p%s, thread %d%s", number, done->operation, done->p, bytes, heap->thread.number, text);
}

static void leaving(struct heap *heap, const char *operation, const void *p, size_t size)
{
    struct visit *visit = visit_of(heap);
    if (load_relaxed(&visit->heap) != heap)
        return;
    uint32_t number = add_relaxed(&written, 1u) + 1;
    if (number <= policy.traced)
        write_route(number, heap, &visit->before, &(struct done){operation, p, size});
    if (number == policy.traced)
        note("hakmem: route: that was the last; HAKMEM_TRACE=route:N shows N");
    store_release(&visit->heap, NULL);
}

void route_trace_start(void)
{
    heap_events.leaving = leaving;
    heap_events.entered = entered;
}
