/*
 * A library that looks from outside as hakmem does: hak_control and all it leads to, with known numbers in it, and no
 * allocator behind. What FAKE says is wrong with it. Layout: python/hakmem_observe/layout.py.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLASSES = 3, UNITS = 128, SUPERSLABS = 3, UNIT_BYTES = 16384 };

struct bin {
    void **top, **end;
};

struct shelf {
    void **slots;
    uint64_t blocks_out;
    uint64_t refills;
    uint16_t capacity, holes;
};

struct counts {
    uint64_t sent;
    uint32_t slabs[CLASSES];
};

struct heap {
    int64_t budget, twin_budget, granted;
    struct bin bin[CLASSES];
    struct shelf shelf[CLASSES];
    void *tls;
    int32_t thread;
    uint32_t number;
    uint64_t flushes;
    struct counts *counts;
    struct heap *next;
} __attribute__((aligned(8192)));

struct superslab {
    uint64_t used[2], dirty[2];
    uint8_t committed;
    char pad[95];
};

struct slab {
    uint32_t blocks, free;
    uint8_t class;
};

struct size_class {
    uint32_t size, other;
};

struct metric {
    uint64_t at, scale;
    uint32_t stride, count;
    uint8_t kind, scope, width, group, base;
};

struct text {
    char name[24], about[40];
};

struct layout {
    uint64_t heaps, classes;
    uint32_t class_stride, class_count, unit_bytes, heap_bytes;
    uint32_t next, number, tls, thread, budget, twin_budget, granted;
    uint32_t bins, bin_stride, shelves, shelf_stride, slots, capacity, blocks_out, counts, holes;
    uint64_t superslabs, superslab_count, arena_base, tags, spans;
    uint32_t superslab_bytes, units_per_superslab, used, dirty, committed, tag_kinds, slab_blocks, slab_free, slab_class, pad2;
};

struct hak_control {
    char magic[8];
    uint32_t version, size;
    uint32_t request, served;
    int32_t result;
    uint32_t pad;
    uint64_t argument;
    char path[512];
    uint64_t metrics;
    uint32_t metric_count, metric_bytes;
    uint64_t texts;
    uint32_t text_bytes, base_count;
    uint64_t bases;
    struct layout layout;
};

_Static_assert(offsetof(struct hak_control, layout) == 592 && offsetof(struct layout, superslabs) == 96, "as agreed");
_Static_assert(sizeof(struct layout) == 176 && sizeof(struct metric) == 32, "as agreed");

static const struct size_class classes[CLASSES] = {{16, 0}, {48, 0}, {1024, 0}};
static void *magazine[2][16];
static struct heap heap[2];
static struct counts counts[2] = {{.sent = 8, .slabs = {0, 1, 0}}, {.sent = 9}};
static struct heap *heaps = &heap[0];
static struct slab slab = {.blocks = 341, .free = 300, .class = 1};
static char large, kept;
static struct superslab table[SUPERSLABS];
static uint64_t tags[SUPERSLABS * UNITS];
static void *spans[SUPERSLABS * UNITS];
static void *table_word = table, *tags_word = tags, *spans_word = spans, *base_word;
static uint64_t superslab_count = SUPERSLABS;
static uint64_t purges, held = 123456, heartbeats[4] = {1, 2, 8, (uint64_t)-1}, soft = UINT64_MAX, taken = 77, waits = 5, maps = 9, rate;

#define OWN(variable) (uint64_t)(uintptr_t)&(variable)
enum { BASES = 8 };
static uint64_t bases[BASES];
static struct metric metrics[] = {
    {0, 1, 0, 1, 0, 0, 8, 0, 0},
    {0, 1, 0, 1, 0, 0, 8, 0, 1},
    {0, 1, 0, 1, 1, 0, 8, 1, 2},
    {0, 1, 8, 4, 1, 0, 8, 1, 3},
    {offsetof(struct heap, flushes), 1, 0, 1, 1, 1, 8, 1, 0},
    {offsetof(struct heap, shelf) + offsetof(struct shelf, refills), 1, sizeof(struct shelf), CLASSES, 1, 2, 8, 1, 0},
    {offsetof(struct counts, sent), 1, 0, 1, 1, 3, 8, 1, 0},
    {offsetof(struct counts, slabs), 1, 4, CLASSES, 0, 4, 4, 1, 0},
    {0, 1, 0, 1, 1, 0, 8, 2, 4},
    {0, 1, 0, 1, 1, 0, 8, 4, 5},
    {0, 1, 0, 1, 1, 0, 8, 4, 6},
    {0, 1, 0, 1, 0, 0, 8, 3, 7},
};

/* Of each of them. */
static struct text texts[] = {
    {"held_bytes", "what counts for the limits"},
    {"soft_limit_bytes", "the soft limit"},
    {"purges", "how often memory was given back"},
    {"heartbeats", "visits for the budget"},
    {"flushes", "full magazines"},
    {"refills", "empty magazines"},
    {"remote_sent_blocks", "sent"},
    {"slabs", "slabs there are"},
    {"mmap", "calls of mmap"},
    {"span.taken", "the span lock"},
    {"span.waits", "waits for it"},
    {"rate_bytes", "bytes between samples"},
};

__attribute__((visibility("default"))) struct hak_control hak_control = {
    .magic = "hakmem\0",
    .version = 4,
    .size = sizeof(struct hak_control),
    .metric_count = sizeof metrics / sizeof metrics[0],
    .metric_bytes = sizeof metrics[0],
    .text_bytes = sizeof texts[0],
};

static void lay_out(void)
{
    hak_control.metrics = (uint64_t)(uintptr_t)metrics;
    hak_control.texts = (uint64_t)(uintptr_t)texts;
    hak_control.bases = (uint64_t)(uintptr_t)bases;
    hak_control.base_count = BASES;
    uint64_t words[BASES] = {OWN(held), OWN(soft), OWN(purges), OWN(heartbeats), OWN(maps), OWN(taken), OWN(waits), OWN(rate)};
    memcpy(bases, words, sizeof bases);
    metrics[3].at = sizeof heartbeats[0];
    bases[3] -= metrics[3].at;
    hak_control.layout = (struct layout){
        .heaps = OWN(heaps), .classes = OWN(classes), .class_stride = sizeof classes[0], .class_count = CLASSES,
        .unit_bytes = UNIT_BYTES, .heap_bytes = sizeof(struct heap),
        .next = offsetof(struct heap, next), .number = offsetof(struct heap, number), .tls = offsetof(struct heap, tls),
        .thread = offsetof(struct heap, thread), .budget = offsetof(struct heap, budget),
        .twin_budget = offsetof(struct heap, twin_budget), .granted = offsetof(struct heap, granted),
        .bins = offsetof(struct heap, bin), .bin_stride = sizeof(struct bin),
        .shelves = offsetof(struct heap, shelf), .shelf_stride = sizeof(struct shelf),
        .slots = offsetof(struct shelf, slots), .capacity = offsetof(struct shelf, capacity),
        .blocks_out = offsetof(struct shelf, blocks_out), .counts = offsetof(struct heap, counts),
        .holes = offsetof(struct shelf, holes),
        .superslabs = OWN(table_word), .superslab_count = OWN(superslab_count), .arena_base = OWN(base_word),
        .tags = OWN(tags_word), .spans = OWN(spans_word),
        .superslab_bytes = sizeof(struct superslab), .units_per_superslab = UNITS,
        .used = offsetof(struct superslab, used), .dirty = offsetof(struct superslab, dirty),
        .committed = offsetof(struct superslab, committed), .tag_kinds = 4096,
        .slab_blocks = offsetof(struct slab, blocks), .slab_free = offsetof(struct slab, free),
        .slab_class = offsetof(struct slab, class),
    };
}

/* Superslab 0: unit 0 a slab, 1 and 2 a large block, 3 a kept one, 4 stock, 5 dirty and free; 1 is not committed; of 2 the
 * large block has the first unit's tag only. */
static void fill(void)
{
    heap[0] = (struct heap){.budget = 24, .twin_budget = 0, .granted = 1024, .tls = &table, .thread = 4711, .number = 2,
                            .flushes = 3, .next = &heap[1]};
    heap[1] = (struct heap){.budget = 0, .granted = 5000, .number = 1, .flushes = 4};
    for (int i = 0; i < 2; i++) {
        heap[i].counts = &counts[i];
        heap[i].shelf[1] = (struct shelf){.slots = magazine[i], .capacity = 15, .blocks_out = 30, .refills = 6};
        heap[i].bin[1].top = magazine[i] + 5 * (i + 1);
    }
    table[0].committed = table[2].committed = 1;
    table[0].used[0] = 0x1f;
    table[0].dirty[0] = 0x3f;
    tags[0] = (uint64_t)(uintptr_t)&heap[0] | 1;
    spans[0] = &slab;
    tags[1] = 1;
    spans[1] = spans[2] = &large;
    tags[3] = 2;
    spans[3] = &kept;
}

static bool is_slow;

static void serve(void)
{
    uint32_t request = __atomic_exchange_n(&hak_control.request, 0, __ATOMIC_ACQUIRE);
    if (request == 0)
        return;
    if (is_slow)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    int result = 0;
    if (request == 1)
        rate = hak_control.argument != 0 ? hak_control.argument : 524288;
    else if (request == 2)
        rate = 0;
    else if (request == 4)
        purges++;
    else if (request == 3 || request == 5) {
        FILE *file = fopen(hak_control.path, "w");
        if (file != NULL) {
            fputs("{}\n", file);
            fclose(file);
        } else {
            result = 2;
        }
    } else {
        result = 22;
    }
    hak_control.result = result;
    __atomic_store_n(&hak_control.served, hak_control.served + 1, __ATOMIC_RELEASE);
}

static void *run(void *unused)
{
    (void)unused;
    for (;;) {
        serve();
        heap[0].granted += 1000;
        heap[0].flushes++;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return NULL;
}

static void spoil(const char *what)
{
    if (strcmp(what, "cycle") == 0)
        heap[1].next = &heap[0];
    if (strcmp(what, "wild") == 0) { /* every pointer leads nowhere, every count is huge */
        heap[1].next = (struct heap *)0x7777777777777000;
        heap[0].bin[1].top = (void **)~0ull;
        heap[1].shelf[1].slots = (void **)8;
        heap[0].shelf[0] = (struct shelf){.slots = (void **)16, .capacity = UINT16_MAX, .blocks_out = UINT32_MAX};
        superslab_count = UINT64_MAX;
        spans[0] = (void *)0xffffffffffffff00;
        metrics[0].at = UINT64_MAX - 3;
        metrics[2].count = UINT32_MAX;
        metrics[3].stride = UINT32_MAX;
        metrics[4].at = 1ull << 60;
        metrics[8].base = 200;
        memset(texts[8].name, 'x', sizeof texts[8].name);
        memset(texts[9].about, 0xff, sizeof texts[9].about);
        heap[0].counts = (struct counts *)24;
    }
    if (strcmp(what, "version") == 0)
        hak_control.version = 9;
    if (strcmp(what, "layout") == 0)
        hak_control.layout.heap_bytes = 0x7fffffff;
    if (strcmp(what, "metrics") == 0)
        hak_control.metrics = 0x1000;
    if (strcmp(what, "bases") == 0)
        hak_control.bases = 0x1000;
    if (strcmp(what, "texts") == 0)
        hak_control.texts = 0x1000;
    if (strcmp(what, "small") == 0)
        hak_control.size = 100;
    if (strcmp(what, "emptied") == 0)
        heap[0].shelf[1].holes = 2;
    is_slow = strcmp(what, "slow") == 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *wrong = getenv("FAKE");
    lay_out();
    fill();
    if (wrong != NULL)
        spoil(wrong);
    pthread_t thread;
    if (wrong == NULL || strcmp(wrong, "idle") != 0)
        pthread_create(&thread, NULL, run, NULL);
}
