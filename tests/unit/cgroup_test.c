/* os/cgroup.h: which files are read, in trees of files made for it, and what the process may use by them. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/cgroup.h"
#include "os/tasks.h"

static char top[] = "/tmp/hakmem-cgroup-XXXXXX";

/* Makes a file below `top`, with the directories it needs. */
static void write_file(const char *path, const char *text)
{
    char full[PATH_MAX];
    CHECK(snprintf(full, sizeof full, "%s%s", top, path) < (int)sizeof full);
    for (char *slash = full + strlen(top) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* An empty tree, so that each test's files are its own. */
static void make_tree(void)
{
    CHECK(mkdtemp(top) != NULL);
}

static void check_limit_of(enum cgroup_controller what, size_t wanted)
{
    int next_file = dup(0);
    close(next_file);
    errno = 44;
    size_t found = cgroup_limit(top, what);
    CHECK(errno == 44);
    CHECK(dup(0) == next_file); /* nothing has stayed open */
    if (found != wanted)
        fprintf(stderr, "limit %zu instead of %zu\n", found, wanted);
    CHECK(found == wanted);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", top);
    CHECK(system(command) == 0);
}

static void check_limit(size_t wanted)
{
    check_limit_of(CGROUP_MEMORY, wanted);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"
#define V1_MOUNT "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define OTHER_MOUNTS "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"

static void nothing_is_there(void)
{
    make_tree();
    check_limit(SIZE_MAX);
}

static void v2_lowest_of_the_path(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "0::/a/b/c\n");
    write_file("/proc/self/mountinfo", OTHER_MOUNTS V2_MOUNT);
    write_file("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    write_file("/sys/fs/cgroup/a/b/c/memory.high", "max\n");
    write_file("/sys/fs/cgroup/a/b/memory.max", "900\n");
    write_file("/sys/fs/cgroup/a/b/memory.high", "700\n");
    write_file("/sys/fs/cgroup/a/memory.max", "800\n");
    write_file("/sys/fs/cgroup/a/memory.high", "max\n");
    write_file("/sys/fs/cgroup/other/memory.max", "1\n");
    check_limit(700);
}

/* In a namespace of its own the process is in the root, whose directory has a limit. */
static void v2_limit_at_the_mount_point(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "0::/\n");
    write_file("/proc/self/mountinfo", V2_MOUNT);
    write_file("/sys/fs/cgroup/memory.max", "12345\n");
    write_file("/sys/fs/memory.max", "1\n");
    check_limit(12345);
}

static void v1_lowest_of_the_path(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "9:name=systemd:/x\n4:memory:/jobs/7\n1:cpu:/jobs\n");
    write_file("/proc/self/mountinfo", OTHER_MOUNTS V1_MOUNT);
    write_file("/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "5000\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n");
    check_limit(5000);
}

/* A container sees its group mounted, under the host's name for it. */
static void v1_mounted_group(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "4:memory:/docker/17/job\n");
    write_file("/proc/self/mountinfo",
               "35 31 0:32 /docker/16 /elsewhere ro - cgroup cgroup rw,memory\n"
               "36 31 0:32 /docker/17 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    write_file("/elsewhere/memory.limit_in_bytes", "1\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n");
    write_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9000\n");
    check_limit(7000);
}

static void group_that_is_not_mounted(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "0::/../../outside\n");
    write_file("/proc/self/mountinfo", "30 23 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
                                       "31 23 0:26 /other /elsewhere rw - cgroup2 cgroup2 rw\n");
    write_file("/sys/fs/cgroup/memory.max", "300\n");
    write_file("/elsewhere/memory.max", "1\n");
    check_limit(300);
}

static void hybrid(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "4:memory:/jobs\n0::/jobs\n");
    write_file("/proc/self/mountinfo", V1_MOUNT "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write_file("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "600\n");
    write_file("/sys/fs/cgroup/unified/jobs/cgroup.procs", "1\n");
    check_limit(600);
}

static void usual_places_without_a_mountinfo(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "4:memory:/a\n0::/b/c\n");
    write_file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "600\n");
    write_file("/sys/fs/cgroup/b/memory.max", "500\n");
    check_limit(500);
}

/* A group that has been removed: its directory is no more, those above are. */
static void removed_group(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "0::/a/b (deleted)\n");
    write_file("/proc/self/mountinfo", V2_MOUNT);
    write_file("/sys/fs/cgroup/a/memory.max", "400\n");
    check_limit(400);
}

static void blanks_in_names(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "0::/my group\n");
    write_file("/proc/self/mountinfo", "30 23 0:26 / /a\\040b rw - cgroup2 cgroup2 rw\n");
    write_file("/a b/my group/memory.high", "321\n");
    check_limit(321);
}

static void v2_fewest_processors_of_the_path(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "0::/a/b\n");
    write_file("/proc/self/mountinfo", V2_MOUNT);
    write_file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    write_file("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    write_file("/sys/fs/cgroup/cpu.max", "800000 100000\n");
    check_limit_of(CGROUP_CPU, 3);
}

static void v1_processors(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "4:memory:/m\n3:cpuset:/s\n2:cpu,cpuacct:/jobs/7\n");
    write_file("/proc/self/mountinfo", V1_MOUNT "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us", "-1\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us", "100000\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "50000\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "10000\n");
    write_file("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1\n");
    check_limit_of(CGROUP_CPU, 5);
}

static void no_quota_of_processors(void)
{
    make_tree();
    write_file("/proc/self/cgroup", "2:cpu:/a\n0::/b\n");
    write_file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n"); /* of what period nobody says */
    write_file("/sys/fs/cgroup/b/cpu.max", "max 100000\n");
    check_limit_of(CGROUP_CPU, SIZE_MAX);
}

/* Longer than any buffer: an overlay of many layers, and mounts without number. */
static void long_mountinfo(void)
{
    static char text[300000];
    size_t length = 0;
    for (int i = 0; i < 1000; i++)
        length += (size_t)snprintf(text + length, 200, "%d 31 0:32 / /mnt/volume-%d rw shared:%d - ext4 /dev/x rw\n", i, i, i);
    length += (size_t)snprintf(text + length, 200, "7 7 0:7 / /merged rw - overlay overlay rw,lowerdir=");
    for (int i = 0; i < 5000; i++) /* whose end looks like a line of its own, wherever it begins */
        length += (size_t)snprintf(text + length, 200, " /");
    length += (size_t)snprintf(text + length, 200, " - cgroup2 cgroup2 rw\n" V2_MOUNT);
    make_tree();
    write_file("/proc/self/cgroup", "0::/a\n");
    write_file("/proc/self/mountinfo", text);
    write_file("/sys/fs/cgroup/a/memory.max", "222\n");
    write_file("/a/memory.max", "1\n");
    check_limit(222);
}

static void names_that_are_too_long(void)
{
    static char line[9000];
    size_t length = (size_t)snprintf(line, sizeof line, "0::");
    while (length < 8000)
        length += (size_t)snprintf(line + length, sizeof line - length, "/component");
    line[length] = '\n';
    make_tree();
    write_file("/proc/self/cgroup", line);
    write_file("/proc/self/mountinfo", V2_MOUNT);
    write_file("/sys/fs/cgroup/memory.max", "1\n");
    check_limit(SIZE_MAX);
    /* Each fits, but not both together. */
    strcpy(top, "/tmp/hakmem-cgroup-XXXXXX");
    make_tree();
    line[4080] = '\n';
    line[4081] = '\0';
    write_file("/proc/self/cgroup", line);
    write_file("/proc/self/mountinfo", V2_MOUNT);
    write_file("/sys/fs/cgroup/memory.max", "15\n");
    check_limit(15);
}

static void texts_that_make_no_sense(void)
{
    static const char *const texts[] = {"", "\n", "\n\n\n", "0::/", "0::\n4:memory\n", "hello\nworld\n", "0::/a\n0::/b\n",
                                        ":::\n - - \n", "\377\376\n"};
    enum { COUNT = sizeof texts / sizeof texts[0] };
    for (size_t i = 0; i < COUNT * COUNT; i++) {
        strcpy(top, "/tmp/hakmem-cgroup-XXXXXX");
        make_tree();
        write_file("/proc/self/cgroup", texts[i / COUNT]);
        write_file("/proc/self/mountinfo", texts[i % COUNT]);
        write_file("/sys/fs/cgroup/memory.max", texts[i % COUNT]);
        check_limit(SIZE_MAX);
    }
}

/* Who has no more files to open asks again. */
static void files_that_cannot_be_opened_now(void)
{
    struct rlimit before, none;
    make_tree();
    write_file("/proc/self/cgroup", "0::/a\n");
    write_file("/proc/self/mountinfo", V2_MOUNT);
    write_file("/sys/fs/cgroup/a/memory.max", "900\n");
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    size_t found = cgroup_limit(top, CGROUP_MEMORY);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(found == 0);
    check_limit(900);
}

/* Of the system that runs the test: whatever it says, it can be asked. */
static void this_system(void)
{
    CHECK(cgroup_limit("", CGROUP_MEMORY) > 0 && cgroup_limit("", CGROUP_CPU) > 0);
}

static void *wait_at(void *barrier)
{
    pthread_barrier_wait(barrier);
    return NULL;
}

size_t __real_os_processors(void); /* not the fake one (fake_os.h) */

static size_t threads_here;

static void count_one(const char *task, void *unused)
{
    (void)task;
    (void)unused;
    threads_here++;
}

/* A thread that is bound to one processor asks for the others too. */
static void processors_of_all_threads(void)
{
    pthread_barrier_t barrier;
    pthread_t other;
    cpu_set_t all, one;
    size_t before = __real_os_processors();
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    if (CPU_COUNT(&all) < 2 || before < 2) {
        CANNOT_TRY("it needs two processors");
        return;
    }
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0 && pthread_create(&other, NULL, wait_at, &barrier) == 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(__real_os_processors() == before);
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(other, NULL) == 0);
    for (int i = 0; i < 1000 && __real_os_processors() != 1; i++) /* the kernel may show it for a moment more */
        usleep(1000);
    os_each_task(count_one, NULL);
    CHECK(__real_os_processors() == 1 || threads_here > 1); /* a sanitizer may have a thread of its own */
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(nothing_is_there),
        UNIT_TEST(v2_lowest_of_the_path),
        UNIT_TEST(v2_limit_at_the_mount_point),
        UNIT_TEST(v1_lowest_of_the_path),
        UNIT_TEST(v1_mounted_group),
        UNIT_TEST(group_that_is_not_mounted),
        UNIT_TEST(hybrid),
        UNIT_TEST(usual_places_without_a_mountinfo),
        UNIT_TEST(removed_group),
        UNIT_TEST(blanks_in_names),
        UNIT_TEST(v2_fewest_processors_of_the_path),
        UNIT_TEST(v1_processors),
        UNIT_TEST(no_quota_of_processors),
        UNIT_TEST(long_mountinfo),
        UNIT_TEST(names_that_are_too_long),
        UNIT_TEST(texts_that_make_no_sense),
        UNIT_TEST(files_that_cannot_be_opened_now),
        UNIT_TEST(this_system),
        UNIT_TEST(processors_of_all_threads),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
