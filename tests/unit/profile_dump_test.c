/* observe/profile_dump.h: the file that is written, and what may go wrong with it. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/meta.h"
#include "config/policy.h"
#include "fake_os.h"
#include "observe/profile_dump.h"
#include "os/frame.h"
#include "os/os.h"
#include "os/program.h"
#include "process.h"
#include "profiles.h"
#include "refused_call.h"

enum { TEXT_MOST = 4 << 20 };

static char directory[64];
static char path[128];
static char text[TEXT_MOST];

/* Where the test may write. */
static void make_directory(void)
{
    strcpy(directory, "/tmp/hakmem-profile-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/heap", directory);
}

static void remove_directory(void)
{
    (void)unlink(path);
    CHECK(rmdir(directory) == 0); /* nothing else was left */
}

static void read_text(void)
{
    int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    size_t length = 0;
    for (ssize_t n; (n = read(file, text + length, TEXT_MOST - 1 - length)) > 0;)
        length += (size_t)n;
    text[length] = '\0';
    close(file);
}

struct numbers {
    unsigned long live;
    unsigned long live_bytes;
    unsigned long allocated;
    unsigned long allocated_bytes;
};

static bool parse_site(const char *line, struct numbers *numbers)
{
    int end = 0;
    int found = sscanf(line, "%lu: %lu [%lu: %lu] @%n", &numbers->live, &numbers->live_bytes, &numbers->allocated,
                       &numbers->allocated_bytes, &end);
    return found == 4 && end > 0 && strncmp(line + end, " 0x", 3) == 0;
}

#define BUILD_ID "# build-id 0x"
#define MAPS "MAPPED_LIBRARIES:"

/* From the first such line on, if there is any, to the line of the mappings. The program's is among them. */
static void parse_build_ids(char *line, char **rest)
{
    static struct os_program program;
    bool found = false;
    os_program(&program);
    for (; strcmp(line, MAPS) != 0; line = strtok_r(NULL, "\n", rest)) {
        char id[2 * BUILD_ID_MOST + 1];
        unsigned long start;
        CHECK(sscanf(line, BUILD_ID "%lx %128[0-9a-f]", &start, id) == 2 && start % os_page_size() == 0);
        found = found || strcmp(id, program.build_id) == 0;
    }
    uintptr_t word = 0;
    bool can_read = os_read((uintptr_t)&word, &word, sizeof word) == sizeof word;
    CHECK(found == (program.build_id[0] != '\0' && can_read));
}

/* Verifies the form of what was read; returns the numbers of its first line, which are the sums of the others. */
static struct numbers parse(unsigned long *sites)
{
    struct numbers all;
    struct numbers sum = {0};
    unsigned long rate;
    unsigned long pid;
    char *rest;
    char *line = strtok_r(text, "\n", &rest);
    CHECK(sscanf(line, "heap profile: %lu: %lu [%lu: %lu] @ heap_v2/%lu", &all.live, &all.live_bytes, &all.allocated,
                 &all.allocated_bytes, &rate) == 5);
    line = strtok_r(NULL, "\n", &rest);
    CHECK(sscanf(line, "# hakmem-profile 1 pid=%lu rate=%*u started_ms=%*u now_ms=%*u", &pid) == 1 && pid == (unsigned long)getpid());
    for (*sites = 0; strncmp(line = strtok_r(NULL, "\n", &rest), BUILD_ID, strlen(BUILD_ID)) != 0 && strcmp(line, MAPS) != 0; ++*sites) {
        struct numbers site;
        unsigned long n[10];
        CHECK(parse_site(line, &site));
        sum.live += site.live;
        sum.live_bytes += site.live_bytes;
        sum.allocated += site.allocated;
        sum.allocated_bytes += site.allocated_bytes;
        line = strtok_r(NULL, "\n", &rest);
        CHECK(sscanf(line, "# peak %lu %lu lifetimes %lu %lu %lu %lu %lu %lu %lu %lu", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5],
                     &n[6], &n[7], &n[8], &n[9]) == 10);
    }
    CHECK(memcmp(&all, &sum, sizeof all) == 0);
    parse_build_ids(line, &rest);
    CHECK(strstr(rest, " r-xp ") != NULL);
    return all;
}

static void is_read_as_it_was_written(void)
{
    unsigned long sites;
    static void *blocks[300];
    make_directory();
    profile_begin(1);
    for (int i = 0; i < 300; i++)
        blocks[i] = hak_malloc(1 + (size_t)i * 200);
    for (int i = 0; i < 100; i++)
        hak_free(blocks[i]);
    CHECK(hak_profile_dump(path) == 0);
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    read_text();
    struct numbers all = parse(&sites);
    CHECK(all.live == 200 && all.allocated == 300 && sites == profile_totals.sites);
    CHECK(all.live_bytes == profile_totals.live.bytes && all.allocated_bytes == profile_totals.allocated.bytes);
    /* Another takes its place. */
    CHECK(hak_profile_stop() == 0);
    CHECK(hak_profile_dump(path) == 0);
    remove_directory();
}

/* However much later it is written. */
static void ends_when_it_is_stopped(void)
{
    enum { RUNS_MS = 1500, LATER_MS = 3600 * 1000 };
    unsigned long times[2];
    make_directory();
    fake_clock_set(100000);
    profile_begin(1);
    fake_clock_set(100000 + RUNS_MS);
    CHECK(hak_profile_stop() == 0);
    fake_clock_set(100000 + LATER_MS);
    CHECK(hak_profile_dump(path) == 0);
    read_text();
    CHECK(sscanf(strchr(text, '\n'), "\n# hakmem-profile 1 pid=%*u rate=%*u started_ms=%lu now_ms=%lu", &times[0], &times[1]) == 2);
    CHECK(times[1] - times[0] == RUNS_MS);
    remove_directory();
}

/* In a root without /proc. */
static void says_that_there_are_no_mappings(void)
{
    enum { NO_ROOT = 77 };
    if (process_is_emulated()) {
        CANNOT_TRY("the emulator makes mappings up");
        return;
    }
    make_directory();
    profile_begin(1);
    hak_free(hak_malloc(100));
    pid_t child = fork();
    if (child == 0)
        _exit(chroot(directory) != 0 ? NO_ROOT : hak_profile_dump("/heap"));
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_ROOT) {
        CANNOT_TRY("only root may change the root");
    } else {
        CHECK(WEXITSTATUS(status) == 0);
        read_text();
        CHECK(strstr(text, "\nMAPPED_LIBRARIES:\n# no mappings\n") != NULL);
    }
    remove_directory();
}

static void errors_are_told(void)
{
    make_directory();
    CHECK(hak_profile_dump(path) == ENODATA && hak_profile_dump(NULL) == EINVAL);
    CHECK(access(path, F_OK) != 0);
    profile_begin(1);
    hak_free(hak_malloc(100));
    CHECK(hak_profile_dump("") == ENOENT);
    CHECK(hak_profile_dump("/nowhere/heap") == ENOENT);
    CHECK(hak_profile_dump(directory) == EISDIR);
    CHECK(hak_profile_dump("/dev/full") == ENOSPC);
    struct stat status;
    CHECK(stat("/dev/full", &status) == 0 && S_ISCHR(status.st_mode));
    CHECK(hak_profile_dump("/dev/null") == 0);
    static char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    CHECK(hak_profile_dump(longest) == ENAMETOOLONG);
    CHECK(symlink("elsewhere", path) == 0);
    CHECK(hak_profile_dump(path) == ELOOP);
    fake_os_refuse(FAKE_RESERVE, 1, FAKE_EVERY);
    CHECK(hak_profile_dump(path) == ENOMEM);
    fake_os_refuse(FAKE_COMMIT, 1, FAKE_EVERY);
    CHECK(hak_profile_dump(path) == ENOMEM);
    fake_os_obey();
    remove_directory();
}

/* Of a process that has this number in another container and writes, or of one that was killed while it wrote. */
static void files_of_others_stay(void)
{
    char others[200];
    make_directory();
    snprintf(others, sizeof others, "%s.%d-0.tmp", path, (int)getpid());
    CHECK(close(open(others, O_CREAT | O_WRONLY, 0600)) == 0);
    profile_begin(1);
    fake_os_refuse(FAKE_RANDOM, 1, FAKE_EVERY);
    CHECK(hak_profile_dump(path) == 0);
    fake_os_obey();
    CHECK(unlink(others) == 0);
    remove_directory();
}

static uint32_t ended;

static void *allocate_on(void *argument)
{
    void *kept[64] = {0};
    uintptr_t salt = (uintptr_t)argument;
    for (size_t i = salt; !__atomic_load_n(&ended, __ATOMIC_RELAXED); i++) {
        hak_free(kept[i % 64]);
        kept[i % 64] = hak_malloc(1 + i * 37 % 5000 * (i % 100 == 0 ? 20 : 1));
    }
    for (int i = 0; i < 64; i++)
        hak_free(kept[i]);
    return NULL;
}

static void is_of_one_moment(void)
{
    pthread_t threads[3];
    unsigned long sites;
    make_directory();
    profile_begin(100);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_on, (void *)i) == 0);
    for (int i = 0; i < 30; i++) {
        CHECK(hak_profile_dump(path) == 0);
        read_text();
        CHECK(parse(&sites).live <= 3 * 64);
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(hak_profile_dump(path) == 0);
    read_text();
    CHECK(parse(&sites).live == 0);
    remove_directory();
}

static void *dump_to_pipe(void *error)
{
    do
        *(int *)error = hak_profile_dump(path);
    while (*(int *)error == EBUSY);
    return NULL;
}

/* One that waits for a reader keeps others from theirs, and tells them. */
static void one_writes_at_a_time(void)
{
    pthread_t thread;
    int error = -1;
    int others = 0;
    make_directory();
    profile_begin(1);
    hak_free(hak_malloc(100));
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(pthread_create(&thread, NULL, dump_to_pipe, &error) == 0);
    while (others == 0)
        others = hak_profile_dump("/dev/null");
    CHECK(others == EBUSY);
    read_text();
    CHECK(pthread_join(thread, NULL) == 0 && error == 0);
    CHECK(strncmp(text, "heap profile: ", 14) == 0);
    CHECK(hak_profile_dump("/dev/null") == 0);
    remove_directory();
}

/* Each time that a signal asks for it. */
static void what_is_asked_for_takes_no_memory_for_good(void)
{
    enum { TIMES = 64, PAGES_ADRIFT = 16 };
    make_directory();
    profile_begin(1);
    policy.profile_path = path;
    hak_free(hak_malloc(100));
    CHECK(profile_dump_asked() == 0);
    size_t before = process_mapped_bytes();
    for (int i = 0; i < TIMES; i++)
        CHECK(profile_dump_asked() == 0);
    CHECK(process_mapped_bytes() <= before + PAGES_ADRIFT * os_page_size());
    remove_directory();
}

/* As by a signal handler that has interrupted what holds it. */
static void is_refused_under_a_lock(void)
{
    CHECK(hak_profile_start(1) == 0);
    lock_take(&meta_lock);
    CHECK(hak_profile_dump("/dev/null") == EDEADLK && hak_profile_start(1) == EDEADLK && hak_profile_stop() == EDEADLK);
    lock_drop(&meta_lock);
    CHECK(hak_profile_dump("/dev/null") == 0 && hak_profile_stop() == 0);
}

static void children_write_their_own(void)
{
    int status;
    unsigned long sites;
    make_directory();
    profile_begin(1);
    void *block = hak_malloc(100);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        hak_free(block);
        CHECK(hak_profile_dump(path) == 0);
        read_text();
        CHECK(parse(&sites).live == 0);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(hak_profile_dump(path) == 0);
    read_text();
    CHECK(parse(&sites).live == 1);
    hak_free(block);
    remove_directory();
}

static void is_written_at_exit(void)
{
    int status;
    char pattern[200];
    make_directory();
    snprintf(pattern, sizeof pattern, "%s.%%p", path);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        policy.profile_path = pattern;
        profile_begin(1);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    snprintf(path, sizeof path, "%s/heap.%d", directory, (int)child);
    read_text();
    CHECK(strncmp(text, "heap profile: ", 14) == 0);
    remove_directory();
}

static void fail_at_exit(uintptr_t unused)
{
    (void)unused;
    policy.profile_path = "/nowhere/heap";
    profile_begin(1);
    exit(0);
}

static void failures_at_exit_are_told(void)
{
    CHECK_SAYS(fail_at_exit, 0, "hakmem: warning: HAKMEM_PROFILE: the profile was not written to /nowhere/heap: error 2\n");
}

static void dump_without_memory(uintptr_t unused)
{
    (void)unused;
    policy.profile_path = "/nowhere/%p";
    profile_begin(1);
    refuse_call(SYS_mmap, ENOMEM);
    _exit(profile_dump_asked() == ENOMEM ? 0 : 1);
}

static void without_memory_it_is_said(void)
{
    if (calls_can_be_refused(__func__))
        CHECK_SAYS(dump_without_memory, 0, "hakmem: warning: HAKMEM_PROFILE: the profile was not written to /nowhere/%p: error 12\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(is_read_as_it_was_written),
        UNIT_TEST(ends_when_it_is_stopped),
        UNIT_TEST(says_that_there_are_no_mappings),
        UNIT_TEST(errors_are_told),
        UNIT_TEST(files_of_others_stay),
        UNIT_TEST(is_of_one_moment),
        UNIT_TEST(one_writes_at_a_time),
        UNIT_TEST(what_is_asked_for_takes_no_memory_for_good),
        UNIT_TEST(is_refused_under_a_lock),
        UNIT_TEST(children_write_their_own),
        UNIT_TEST(is_written_at_exit),
        UNIT_TEST(failures_at_exit_are_told),
        UNIT_TEST(without_memory_it_is_said),
    };
    return cmocka_run_group_tests_name("profile_dump", tests, NULL, NULL);
}
