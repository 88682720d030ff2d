/* What hakmem says it holds, against the resident memory of its own mappings, as the kernel counts it: within 2 % at rest. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/metrics.h"
#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "hakmem.h"
#include "heap/life.h"
#include "heap/view.h"
#include "random.h"

enum { BLOCKS = 60000, LARGE_BLOCKS = 1000, THREADS = 4, MAPPINGS_MOST = 512, KEPT_OF = 20 };

static char *blocks[BLOCKS];
static size_t sizes[BLOCKS];

/* A mapping of this process. */
struct mapping {
    uintptr_t start;
    uintptr_t end;
    size_t rss;
    bool ours;
};

static struct mapping mappings[MAPPINGS_MOST];
static size_t mapping_count;

static void read_mappings(void)
{
    FILE *smaps = fopen("/proc/self/smaps", "r");
    char line[512];
    CHECK(smaps != NULL);
    mapping_count = 0;
    while (fgets(line, sizeof line, smaps) != NULL) {
        struct mapping next = {0};
        size_t kib;
        if (sscanf(line, "%zx-%zx ", &next.start, &next.end) == 2) {
            CHECK(mapping_count < MAPPINGS_MOST);
            mappings[mapping_count++] = next;
        } else if (sscanf(line, "Rss: %zu kB", &kib) == 1) {
            mappings[mapping_count - 1].rss = kib << 10;
        }
    }
    CHECK(fclose(smaps) == 0);
}

static void claim(const void *p)
{
    if ((uintptr_t)p - (uintptr_t)&view_statics < sizeof view_statics)
        return;
    for (size_t i = 0; i < mapping_count; i++)
        if ((uintptr_t)p >= mappings[i].start && (uintptr_t)p < mappings[i].end)
            mappings[i].ours = true;
}

/* The range, its tables, and whatever metadata memory there is a record in: but for the 8 KB of it that lie among the variables (view.h),
 * in a mapping with the program's own. */
static size_t rss_of_ours(void)
{
    size_t bytes = 0;
    size_t units = (arena.limit << POINTER_ALIGN_SHIFT) / UNIT_SIZE;
    void *piece = meta_alloc(64);
    read_mappings();
    claim(piece);
    meta_free(piece, 64);
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        claim(heap);
    for (size_t i = 0; i < units; i++)
        if (arena.spans[i] != NULL)
            claim(arena.spans[i]);
    for (size_t i = 0; i < units; i += SUPERSLAB_UNITS)
        claim(arena.base + i * UNIT_SIZE);
    claim(arena.tags);
    claim(arena.spans);
    claim(arena.superslabs);
    for (size_t i = 0; i < mapping_count; i++) {
        uintptr_t low = (uintptr_t)arena.base;
        bool in_range = mappings[i].start >= low && mappings[i].end <= low + (arena.limit << POINTER_ALIGN_SHIFT);
        bytes += mappings[i].ours || in_range ? mappings[i].rss : 0;
    }
    return bytes;
}

static void check_agrees(const char *when)
{
    struct hak_stats stats;
    CHECK(hak_stats_get(&stats, sizeof stats) == 0);
    size_t rss = rss_of_ours();
    size_t apart = stats.held_bytes > rss ? stats.held_bytes - rss : rss - stats.held_bytes;
    print_message("%s: held %zu KiB, Rss %zu KiB\n", when, stats.held_bytes >> 10, rss >> 10);
    CHECK(apart <= rss / 50);
}

static void take(int i, size_t size)
{
    sizes[i] = size;
    blocks[i] = hak_malloc(size);
    CHECK(blocks[i] != NULL);
    memset(blocks[i], 1, size);
}

static void drop(int i)
{
    hak_free(blocks[i]);
    blocks[i] = NULL;
}

static void drop_all(void)
{
    for (int i = 0; i < BLOCKS; i++)
        drop(i);
}

static void thin_out(uint64_t *state)
{
    for (int i = 0; i < BLOCKS; i++)
        if (random_below(state, KEPT_OF) != 0)
            drop(i);
}

static void small_blocks_with_holes(void)
{
    uint64_t state = 5;
    for (int i = 0; i < BLOCKS; i++)
        take(i, 16 + random_below(&state, 2000));
    check_agrees("grown");
    thin_out(&state);
    check_agrees("thinned out");
    hak_purge(HAK_PURGE_CACHED);
    check_agrees("given back");
    for (int i = 0; i < BLOCKS; i += 3)
        if (blocks[i] == NULL)
            take(i, 16 + random_below(&state, 2000));
    check_agrees("filled again");
    drop_all();
    hak_purge(HAK_PURGE_CACHED);
}

/* Slabs of each class are new but for their first blocks. */
static void few_blocks_of_each_class(void)
{
    int i = 0;
    for (size_t size = 16; size <= 32768; size += 16)
        take(i++, size);
    check_agrees("all classes");
    drop_all();
    hak_purge(HAK_PURGE_CACHED);
}

/* Most are no multiple of a unit, so that the ends of their last units are never used. */
static void large_blocks(void)
{
    uint64_t state = 6;
    for (int i = 0; i < LARGE_BLOCKS; i++)
        take(i, (33 << 10) + random_below(&state, 60 << 10));
    check_agrees("large blocks");
    for (int i = 0; i < LARGE_BLOCKS; i += 2)
        drop(i);
    check_agrees("large blocks, half of them kept");
    hak_purge(HAK_PURGE_FREE); /* of what is taken again nobody knows which pages of a unit were used */
    check_agrees("large blocks, half of them given back");
    for (int i = 1; i < LARGE_BLOCKS; i += 2) {
        size_t size = sizes[i] + random_below(&state, 64 << 10);
        blocks[i] = hak_realloc(blocks[i], size);
        memset(blocks[i], 2, hak_malloc_usable_size(blocks[i])); /* it may be more than that */
    }
    hak_purge(HAK_PURGE_FREE);
    check_agrees("large blocks, grown");
    drop_all();
    hak_purge(HAK_PURGE_CACHED);
}

struct share {
    int first;
    int end;
    uint64_t state;
};

static void *live(void *argument)
{
    struct share *share = argument;
    for (int i = share->first; i < share->end; i++)
        take(i, 16 + random_below(&share->state, 3000));
    for (int i = share->first; i < share->end; i++)
        if (random_below(&share->state, 4) != 0)
            drop(i);
    return NULL;
}

/* What they leave is thinned out by others. */
static void threads_that_ended(void)
{
    for (int round = 0; round < 3; round++) {
        pthread_t threads[THREADS];
        struct share shares[THREADS];
        for (int i = 0; i < THREADS; i++) {
            shares[i] = (struct share){i * (BLOCKS / THREADS), (i + 1) * (BLOCKS / THREADS), 7 + (uint64_t)i};
            CHECK(pthread_create(&threads[i], NULL, live, &shares[i]) == 0);
        }
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        check_agrees("threads that ended");
        hak_purge(HAK_PURGE_FREE);
        check_agrees("threads that ended, given back");
        drop_all();
        check_agrees("all freed by another");
        hak_purge(HAK_PURGE_CACHED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(small_blocks_with_holes),
        UNIT_TEST(few_blocks_of_each_class),
        UNIT_TEST(large_blocks),
        UNIT_TEST(threads_that_ended),
    };
    return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
