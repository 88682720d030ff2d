/* api/stats.h: what is said to be held, against what the kernel says is in memory. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/stats.h"
#include "api/watch.h"
#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "hakmem.h"
#include "heap/control.h"
#include "heap/events.h"
#include "random.h"

enum { BLOCKS = 60000, LARGE_BLOCKS = 60 };

/* Resident bytes of the range's mappings. */
static size_t rss_of_range(void)
{
    uintptr_t low = (uintptr_t)arena.base;
    uintptr_t high = low + (arena.limit << POINTER_ALIGN_SHIFT);
    FILE *smaps = fopen("/proc/self/smaps", "r");
    CHECK(smaps != NULL);
    char line[512];
    size_t bytes = 0;
    bool inside = false;
    while (fgets(line, sizeof line, smaps) != NULL) {
        size_t start;
        size_t end;
        size_t kib;
        if (sscanf(line, "%zx-%zx ", &start, &end) == 2)
            inside = start >= low && end <= high;
        else if (inside && sscanf(line, "Rss: %zu kB", &kib) == 1)
            bytes += kib << 10;
    }
    CHECK(fclose(smaps) == 0);
    return bytes;
}

static void check_agrees(void)
{
    struct hak_stats stats;
    size_t rss = rss_of_range();
    size_t resident = stats_resident_bytes();
    stats_read(&stats);
    CHECK(resident <= rss + rss / 50 && rss <= resident + resident / 50);
    /* What is held may not have been touched. */
    CHECK(stats.held_bytes + stats.held_bytes / 50 >= rss);
}

static char *take(size_t size)
{
    char *block = hak_malloc(size);
    CHECK(block != NULL);
    memset(block, 1, size);
    return block;
}

static void agrees_with_the_kernel(void)
{
    static char *small[BLOCKS];
    static char *large[LARGE_BLOCKS];
    uint64_t state = 5;
    for (int i = 0; i < BLOCKS; i++)
        small[i] = take(16 + random_below(&state, 2000));
    for (int i = 0; i < LARGE_BLOCKS; i++)
        large[i] = take((40 << 10) + random_below(&state, 1 << 20));
    check_agrees();
    for (int i = 0; i < BLOCKS; i++)
        if (i % 10 != 0)
            hak_free(small[i]);
    for (int i = 0; i < LARGE_BLOCKS; i += 2)
        hak_free(large[i]);
    check_agrees();
    size_t before = stats_resident_bytes();
    hak_purge(HAK_PURGE_CACHED);
    check_agrees();
    CHECK(stats_resident_bytes() < before);
}

static void grows_by_what_is_touched(void)
{
    char *block = hak_malloc(8 << 20);
    size_t before = stats_resident_bytes();
    memset(block, 1, 4 << 20);
    size_t after = stats_resident_bytes();
    CHECK(after >= before + (4 << 20) && after <= before + (4 << 20) + 4 * (size_t)sysconf(_SC_PAGESIZE));
    hak_free(block);
}

/* As by a signal handler that has interrupted what holds it. */
static void are_refused_under_a_lock(void)
{
    struct hak_stats stats;
    hak_free(hak_malloc(1));
    lock_take(&meta_lock);
    CHECK(hak_stats_get(&stats, sizeof stats) == EAGAIN && hak_stats_write("/dev/null") == EAGAIN);
    stats_read(&stats); /* as mallinfo does, which has no way to say so */
    CHECK(stats.committed_bytes == 0 && stats_resident_bytes() == 0);
    lock_drop(&meta_lock);
    CHECK(hak_stats_get(&stats, sizeof stats) == 0 && hak_stats_write("/dev/null") == 0);
    CHECK(hak_stats_get(NULL, sizeof stats) == EINVAL && hak_stats_get(&stats, 0) == EINVAL && hak_stats_write(NULL) == EINVAL);
}

/* What a tool wants to know is of the process that it has asked. */
static void a_child_is_not_asked_for_its_parent(void)
{
    int status;
    hak_free(hak_malloc(1));
    heap_events.forked = watch_forked;
    store_release(&hak_control.words.request, (uint32_t)REQUEST_PURGE);
    pid_t child = fork();
    if (child == 0)
        _exit(load_relaxed(&hak_control.words.request) == REQUEST_NONE ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(load_relaxed(&hak_control.words.request) == REQUEST_PURGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT_TEST(agrees_with_the_kernel), UNIT_TEST(grows_by_what_is_touched),
                                       UNIT_TEST(are_refused_under_a_lock), UNIT_TEST(a_child_is_not_asked_for_its_parent)};
    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
