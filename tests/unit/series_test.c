/* api/stats_file.h and api/watch.h: a series of statistics, an object a line, whoever writes them. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/stats_file.h"
#include "api/watch.h"
#include "config/paths.h"
#include "config/policy.h"
#include "fake_os.h"
#include "heaps.h"
#include "process.h"

enum { WRITERS = 3, OBJECTS = 40, HEAPS = 250, LINE_MOST = 512 * 1024 };

static char directory[] = "/tmp/hakmem-series-XXXXXX";
static char path[64];

/* With as many threads as make an object longer than any buffer for pieces of it. */
static void begin(void)
{
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/series", directory);
    (void)heap_own();
    for (int i = 0; i < HEAPS; i++)
        CHECK(life_birth(NULL) != NULL);
    policy.stats = STATS_SERIES;
    CHECK(path_set(PATH_STATS, path));
}

static void end(void)
{
    CHECK(unlink(path) == 0 && rmdir(directory) == 0);
}

static size_t length(void)
{
    struct stat status;
    return stat(path, &status) == 0 ? (size_t)status.st_size : 0;
}

static bool is_whole(const char *line)
{
    static const char start[] = "{\"schema\":\"hakmem-stats\"";
    int depth = 0;
    for (const char *c = line; *c != '\n'; c++)
        depth += (*c == '{') - (*c == '}');
    return depth == 0 && strncmp(line, start, sizeof start - 1) == 0 && strstr(line + 1, start) == NULL;
}

/* Whole lines; all lines. */
static int count_lines(int *all)
{
    static char line[LINE_MOST];
    int whole = 0;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    for (*all = 0; fgets(line, sizeof line, file) != NULL; ++*all) {
        CHECK(strchr(line, '\n') != NULL);
        whole += is_whole(line);
    }
    CHECK(fclose(file) == 0);
    return whole;
}

static void write_many(void)
{
    for (int i = 0; i < OBJECTS; i++)
        CHECK(stats_write(path, true) == 0);
}

static void objects_of_several_processes_stay_whole(void)
{
    int status;
    int all;
    pid_t child[WRITERS];
    begin();
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        CHECK(child[i] >= 0);
        if (child[i] == 0) {
            write_many();
            _exit(0);
        }
    }
    for (int i = 0; i < WRITERS; i++)
        CHECK(waitpid(child[i], &status, 0) == child[i] && status == 0);
    CHECK(length() > (size_t)WRITERS * OBJECTS * 64 * 1024);
    CHECK(count_lines(&all) == WRITERS * OBJECTS && all == WRITERS * OBJECTS);
    end();
}

/* A disk that is full for a while costs the objects of that time. */
static void behind_half_an_object_a_line_begins(void)
{
    int all;
    begin();
    CHECK(stats_write(path, true) == 0);
    process_limit_files(length() + 5000);
    CHECK(stats_write(path, true) == EFBIG && stats_write(path, true) == EFBIG);
    process_limit_files(RLIM_INFINITY);
    CHECK(stats_write(path, true) == 0 && stats_write(path, true) == 0);
    CHECK(count_lines(&all) == 3 && all == 4);
    end();
}

static void without_memory_there_are_statistics(void)
{
    int all;
    begin();
    fake_os_refuse(FAKE_RESERVE, 1, FAKE_EVERY);
    CHECK(stats_write(path, true) == 0);
    fake_os_refuse(FAKE_COMMIT, 1, FAKE_EVERY);
    CHECK(stats_write(path, true) == 0);
    fake_os_obey();
    CHECK(count_lines(&all) == 2 && all == 2);
    end();
}

/* Of two threads one may have read the clock before the other and come after it. */
static void a_period_has_one_object(void)
{
    static const uint64_t times[] = {5000, 4999, 5999, 6000, 5990, 6999};
    int all;
    begin();
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        fake_clock_set(times[i]);
        watch_beat();
    }
    CHECK(count_lines(&all) == 2 && all == 2);
    end();
}

static void beat_at_full_disk(uintptr_t unused)
{
    (void)unused;
    policy.stats = STATS_SERIES;
    CHECK(path_set(PATH_STATS, "/dev/full"));
    for (uint64_t ms = 5000; ms < 10000; ms += 1000) {
        fake_clock_set(ms);
        watch_beat();
    }
}

static void says_once_that_nothing_is_written(void)
{
    CHECK_SAYS(beat_at_full_disk, 0, "hakmem: warning: HAKMEM_STATS: the statistics were not written to /dev/full: error 28\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(objects_of_several_processes_stay_whole),
        UNIT_TEST(behind_half_an_object_a_line_begins),
        UNIT_TEST(without_memory_there_are_statistics),
        UNIT_TEST(a_period_has_one_object),
        UNIT_TEST(says_once_that_nothing_is_written),
    };
    return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
