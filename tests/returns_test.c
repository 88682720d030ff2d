/*
 * Memory comes back from programs that do nothing: nobody calls malloc, free or malloc_trim, and the purger does it. Each
 * case frees 19 of 20 blocks and then only looks at its resident memory, for as long as PATIENCE_MS.
 *
 * What is live keeps its content, the purger does not keep a process from ending, nor stands in the way of a fork's child,
 * which has one of its own when it needs one; and with HAKMEM_PURGE=thread=off there is none.
 */
#include "check.h"
#include "child.h"
#include "family.h"
#include "process.h"
#include "random.h"
#include "scale.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, COUNT = 60000, KEPT_OF = 20, SIZE = 1000, PATIENCE_MS = 15000, LOOK_US = 50000 };

struct share {
    unsigned char *blocks[COUNT];
    pthread_barrier_t *barrier;
};

static struct share shares[THREADS];

static void fill(struct share *share, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        share->blocks[i] = family.malloc(SIZE);
        CHECK(share->blocks[i] != NULL);
        memset(share->blocks[i], (int)(i % 251), SIZE);
    }
}

static void thin_out(struct share *share, size_t count)
{
    uint64_t random = 5;
    for (size_t i = 0; i < count; i++) {
        if (random_below(&random, KEPT_OF) != 0) {
            family.free(share->blocks[i]);
            share->blocks[i] = NULL;
        }
    }
}

static void check_and_free(struct share *share, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; share->blocks[i] != NULL && at < SIZE; at++) {
            CHECK(share->blocks[i][at] == i % 251);
        }
        family.free(share->blocks[i]);
        share->blocks[i] = NULL;
    }
}

/* Of 4 KiB pages 81 % have no live block. */
static size_t wanted_rss(size_t full)
{
    return full - (size_t)COUNT * SIZE * 7 / 10;
}

static void wait_for_rss(size_t most)
{
    const uint64_t end = process_now_ms() + PATIENCE_MS;
    while (process_rss_bytes() > most) {
        CHECK(process_now_ms() < end);
        usleep(LOOK_US);
    }
}

static size_t tasks(void)
{
    size_t count = 0;
    DIR *directory = opendir("/proc/self/task");
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

/* The value of a line of a task's status, or of all of a file that has one line; "": there is none. */
static const char *task_says(const char *task, const char *file, const char *name)
{
    static char text[4096];
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/%s", task, file);
    (void)process_read(path, text, sizeof text);
    char *found = strstr(text, name);
    if (found == NULL)
        return "";
    found += strlen(name);
    found[strcspn(found, "\n")] = '\0';
    return found;
}

/* Is there a thread of the purger's name? It takes no signal that is meant for the program. */
static bool sees_purger(void)
{
    static const int meant_for_others[] = {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF, 40};
    bool seen = false;
    DIR *directory = opendir("/proc/self/task");
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(task_says(entry->d_name, "comm", ""), "hakmem-purge") != 0)
            continue;
        const uint64_t blocked = strtoull(task_says(entry->d_name, "status", "\nSigBlk:\t"), NULL, 16);
        for (size_t i = 0; i < sizeof meant_for_others / sizeof meant_for_others[0]; i++)
            CHECK((blocked >> (meant_for_others[i] - 1) & 1) != 0 || process_is_emulated());
        seen = true;
    }
    closedir(directory);
    return seen;
}

static void come_back_from_one_thread(void)
{
    fill(&shares[0], COUNT);
    const size_t full = process_rss_bytes();
    thin_out(&shares[0], COUNT);
    const uint64_t end = process_now_ms() + PATIENCE_MS;
    while (!sees_purger()) {
        CHECK(process_now_ms() < end);
        usleep(LOOK_US / 10);
    }
    wait_for_rss(wanted_rss(full));
    check_and_free(&shares[0], COUNT);
}

static void *own_share(void *argument)
{
    struct share *share = argument;
    fill(share, COUNT / THREADS);
    pthread_barrier_wait(share->barrier);
    pthread_barrier_wait(share->barrier);
    thin_out(share, COUNT / THREADS);
    pthread_barrier_wait(share->barrier); /* asleep, until the memory has come back */
    pthread_barrier_wait(share->barrier);
    check_and_free(share, COUNT / THREADS);
    return NULL;
}

static void come_back_from_sleeping_threads(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++) {
        shares[i].barrier = &barrier;
        CHECK(pthread_create(&threads[i], NULL, own_share, &shares[i]) == 0);
    }
    pthread_barrier_wait(&barrier);
    const size_t full = process_rss_bytes();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    wait_for_rss(wanted_rss(full));
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(pthread_barrier_destroy(&barrier) == 0);
}

enum { SLEEPERS = 200, OF_EACH = 300, ROUNDS = 3, SLEEPER_MOST = 64 * 1024 };

/* Of eight size classes. */
static void *allocate_and_sleep(void *barrier)
{
    static const size_t sizes[] = {24, 48, 64, 100, 250, 400, 1000, 2000};
    void *blocks[OF_EACH];
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < OF_EACH; i++) {
            blocks[i] = family.malloc(sizes[i % (sizeof sizes / sizeof sizes[0])]);
            CHECK(blocks[i] != NULL);
            memset(blocks[i], 1, 24);
        }
        for (size_t i = 0; i < OF_EACH; i++)
            family.free(blocks[i]);
    }
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier); /* asleep, until the memory has come back */
    return NULL;
}

/* Threads that come to a barrier four times: to begin, to go on, before they sleep, and to end. While they sleep resident memory comes to
 * what it was at the beginning, with `change`. */
static void wait_while_they_sleep(int count, void *(*run)(void *barrier), ptrdiff_t change)
{
    static pthread_t threads[SLEEPERS];
    pthread_barrier_t barrier;
    CHECK(pthread_barrier_init(&barrier, NULL, (unsigned)count + 1) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, run, &barrier) == 0);
    pthread_barrier_wait(&barrier);
    const size_t before = process_rss_bytes();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    wait_for_rss(before + (size_t)change);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_barrier_destroy(&barrier) == 0);
}

/* Beyond what they need without a single block. */
static void sleepers_hold_little(void)
{
    wait_while_they_sleep(SLEEPERS, allocate_and_sleep, (ptrdiff_t)SLEEPERS * SLEEPER_MOST);
}

enum { FEW = 8, PAGES_EACH = 1024, PAGE_BLOCK = 4000, KEEP_OF = 4, MORE = 30000 };

/* Each slab keeps a block, so what is free are holes: none of the threads has enough for it to be worth a purger. They go on for a
 * while with other blocks, then sleep. */
static void *leave_holes_and_sleep(void *barrier)
{
    unsigned char *blocks[PAGES_EACH];
    for (size_t i = 0; i < PAGES_EACH; i++) {
        blocks[i] = family.malloc(PAGE_BLOCK);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], (int)(i % 251), PAGE_BLOCK);
    }
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    for (size_t i = 0; i < PAGES_EACH; i++)
        if (i % KEEP_OF != 0)
            family.free(blocks[i]);
    for (int i = 0; i < MORE; i++)
        family.free(memset(family.malloc(SIZE), 1, SIZE));
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier); /* asleep, until the memory has come back */
    for (size_t i = 0; i < PAGES_EACH; i += KEEP_OF) {
        CHECK(blocks[i][PAGE_BLOCK - 1] == i % 251);
        family.free(blocks[i]);
    }
    return NULL;
}

static void come_back_from_several_small_heaps(void)
{
    wait_while_they_sleep(FEW, leave_holes_and_sleep, -(ptrdiff_t)FEW * PAGES_EACH * PAGE_BLOCK / 2);
}

enum { BUSY_ROUNDS = 100 };

/* While the memory of a first half comes back, a second is in use: what is asked for meanwhile is whole. */
static void come_back_under_a_busy_thread(void)
{
    fill(&shares[0], COUNT);
    const size_t full = process_rss_bytes();
    thin_out(&shares[0], COUNT);
    const uint64_t end = process_now_ms() + PATIENCE_MS;
    for (size_t round = 0; round < BUSY_ROUNDS || process_rss_bytes() > wanted_rss(full); round++) {
        CHECK(process_now_ms() < end || round < BUSY_ROUNDS);
        fill(&shares[1], 500);
        check_and_free(&shares[1], 500);
        if (round % 4 == 0) {
            usleep(LOOK_US); /* or the purger never finds it asleep */
        }
    }
    check_and_free(&shares[0], COUNT);
}

static void in_a_child(uintptr_t unused)
{
    (void)unused;
    come_back_from_one_thread();
}

static void come_back_in_a_forks_child(void)
{
    fill(&shares[0], COUNT);
    thin_out(&shares[0], COUNT);
    for (int i = 0; i < 20; i++) { /* before, while and after the purger is at work */
        usleep(150000);
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(60);
            check_and_free(&shares[0], COUNT);
            _exit(0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    check_and_free(&shares[0], COUNT);
    const struct child child = child_run(in_a_child, 0);
    CHECK(child.status == 0 && child.output[0] == '\0');
}

static void *end_as_the_last_thread(void *unused)
{
    (void)unused;
    usleep(300000);
    return NULL;
}

/* The last thread that the program knows of ends: so does the process, at once. (Not in a fork's child: there musl 1.2.3
 * itself never ends after the first thread's pthread_exit.) */
static _Noreturn void leave_by_pthread_exit(void)
{
    pthread_t thread;
    fill(&shares[0], COUNT);
    thin_out(&shares[0], COUNT);
    CHECK(pthread_create(&thread, NULL, end_as_the_last_thread, NULL) == 0);
    pthread_exit(NULL);
}

static void stay_without_a_thread(void)
{
    fill(&shares[0], COUNT);
    const size_t full = process_rss_bytes();
    thin_out(&shares[0], COUNT);
    sleep(4);
    CHECK(tasks() == 1);
    CHECK(process_rss_bytes() > full / 2);
    check_and_free(&shares[0], COUNT);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"one_thread", come_back_from_one_thread},
    {"sleeping_threads", come_back_from_sleeping_threads},
    {"small_heaps", come_back_from_several_small_heaps},
    {"many_sleepers", sleepers_hold_little},
    {"busy_thread", come_back_under_a_busy_thread},
    {"forks_child", come_back_in_a_forks_child},
    {"pthread_exit", leave_by_pthread_exit},
    {"without_a_thread", stay_without_a_thread},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static int run_case(const char *name)
{
    for (size_t i = 0; i < CASES; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "no such case: %s\n", name);
    return 1;
}

/* Each in a process of its own, all at once: they wait for most of their time. */
static void run_all(const char *program)
{
    pid_t running[CASES];
    for (size_t i = 0; i < CASES; i++) {
        running[i] = fork();
        CHECK(running[i] >= 0);
        if (running[i] == 0) {
            if (cases[i].run == stay_without_a_thread)
                CHECK(setenv("HAKMEM_PURGE", "thread=off", 1) == 0);
            process_become(program, cases[i].name);
            CHECK(!"the program can be run again");
        }
    }
    bool well = true;
    for (size_t i = 0; i < CASES; i++) {
        int status;
        CHECK(waitpid(running[i], &status, 0) == running[i]);
        if (status != 0)
            fprintf(stderr, "%s: status 0x%x\n", cases[i].name, (unsigned)status);
        well = well && status == 0;
    }
    CHECK(well);
}

/* Without an argument, all cases. */
int main(int argc, char **argv)
{
    family_require_hakmem();
    if (argc > 1)
        return run_case(argv[1]);
    run_all(argv[0]);
}
