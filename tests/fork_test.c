/*
 * fork while other threads allocate: the child finds a heap it can use, whatever the other threads were doing;
 * in its own thread and in new ones, in a child of the child, and in atfork handlers. Also posix_spawn.
 *
 *   fork_test [--storm] [--no-threads-in-children] [--few]
 *
 * TSan supports no new threads after such a fork. --few: where a process has so many mappings that each fork takes long.
 *
 * A hang ends in SIGALRM.
 */
#include "check.h"
#include "family.h"
#include "random.h"
#include "scale.h"
#include "storm.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHURNING_THREADS = 4,
    INHERITED = 200,
    CHILD_SECONDS = 60,
    TEST_SECONDS = 240,
    FORKS = 200,
    FEW_FORKS = 50,
};

static bool threads_in_children = true;
static atomic_bool stop;
static unsigned char *inherited[INHERITED]; /* half the main thread's, half those of a thread that waits */

static size_t inherited_size(size_t i)
{
    static const size_t sizes[] = {1, 40, 300, 2000, 20000, 50000, 300000};
    return sizes[i % (sizeof sizes / sizeof sizes[0])];
}

static void inherited_fill(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        inherited[i] = family.malloc(inherited_size(i));
        CHECK(inherited[i] != NULL);
        memset(inherited[i], (int)i, inherited_size(i));
    }
}

static void churn(uint64_t *random, size_t operations)
{
    enum { SLOTS = 100 };
    unsigned char *slots[SLOTS] = {NULL};
    for (size_t i = 0; i < operations; i++) {
        const size_t slot = random_below(random, SLOTS);
        CHECK(slots[slot] == NULL || slots[slot][0] == slot);
        family.free(slots[slot]);
        slots[slot] = family.malloc(1 + random_below(random, random_below(random, 100) == 0 ? 200000 : 2000));
        CHECK(slots[slot] != NULL);
        slots[slot][0] = (unsigned char)slot;
    }
    for (size_t slot = 0; slot < SLOTS; slot++) {
        family.free(slots[slot]);
    }
}

static void *churning_thread(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        churn(&random, 2000);
    }
    return NULL;
}

/* Its blocks belong to a heap that lives on in the parent and is without a thread in the child. */
static pthread_barrier_t waiting_thread_is_ready;
static void *waiting_thread(void *argument)
{
    (void)argument;
    inherited_fill(INHERITED / 2, INHERITED);
    pthread_barrier_wait(&waiting_thread_is_ready);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        usleep(1000);
    }
    return NULL;
}

static void *thread_in_child(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    churn(&random, 500);
    return NULL;
}

static void use_inherited_blocks(void)
{
    for (size_t i = 0; i < INHERITED; i++) {
        const size_t size = inherited_size(i);
        CHECK(inherited[i][0] == (unsigned char)i && inherited[i][size - 1] == (unsigned char)i);
        if (i % 3 == 0) {
            inherited[i] = family.realloc(inherited[i], size * 2);
            CHECK(inherited[i] != NULL && inherited[i][size - 1] == (unsigned char)i);
        }
        family.free(inherited[i]);
    }
}

static void wait_for(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "fork: child ended with status 0x%x (signal %d)\n", (unsigned)status,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child_work(size_t number, size_t depth);

static void fork_once(size_t number, size_t depth)
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        child_work(number, depth);
        if (number % 7 == 0) {
            exit(0); /* with atexit handlers and destructors */
        }
        _exit(0);
    }
    wait_for(child);
}

static void child_work(size_t number, size_t depth)
{
    uint64_t random = number;
    churn(&random, 300);
    if (depth == 0 && number % 10 == 3) {
        fork_once(number + 1, 1);
    }
    if (threads_in_children && number % 5 == 0) {
        pthread_t threads[2];
        for (size_t i = 0; i < 2; i++) {
            CHECK(pthread_create(&threads[i], NULL, thread_in_child, (void *)(uintptr_t)(number + i)) == 0);
        }
        for (size_t i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    use_inherited_blocks();
    churn(&random, 300);
}

static void *forking_thread(void *argument)
{
    const size_t count = (size_t)(uintptr_t)argument;
    for (size_t i = 0; i < count; i++) {
        fork_once(i, 0);
    }
    return NULL;
}

/* pthread_atfork handlers may allocate: the first runs before the allocator's, the other two after. */
static void *prepared;
static void atfork_prepare(void)
{
    prepared = family.malloc(1000);
    CHECK(prepared != NULL);
}

static void atfork_after(void)
{
    prepared = family.realloc(prepared, 100000);
    CHECK(prepared != NULL);
    family.free(prepared);
}

static void spawn(size_t count)
{
    char *const arguments[] = {(char *)"true", NULL};
    char *const environment[] = {NULL}; /* a program of the system may not be able to load the library under test */
    for (size_t i = 0; i < count; i++) {
        pid_t child = 0;
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environment) == 0);
        wait_for(child);
    }
}

static void fork_and_spawn(size_t forks)
{
    printf("fork: %zu forks from the main thread\n", forks);
    fflush(stdout);
    for (size_t i = 0; i < forks; i++) {
        fork_once(i, 0);
    }

    printf("fork: %zu forks from another thread\n", forks / 4);
    fflush(stdout);
    pthread_t forker;
    CHECK(pthread_create(&forker, NULL, forking_thread, (void *)(uintptr_t)(forks / 4)) == 0);
    pthread_join(forker, NULL);

    printf("fork: %zu times posix_spawn\n", forks / 4);
    fflush(stdout);
    spawn(forks / 4);
}

int main(int argc, char **argv)
{
    family_require_hakmem();
    storm_begin(&argc, argv, 0);
    size_t forks = FORKS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-threads-in-children") == 0) {
            threads_in_children = false;
        } else if (strcmp(argv[i], "--few") == 0) {
            forks = FEW_FORKS;
        }
    }
    alarm(TEST_SECONDS + storm_seconds());
    CHECK(pthread_atfork(atfork_prepare, atfork_after, atfork_after) == 0);
    CHECK(pthread_barrier_init(&waiting_thread_is_ready, NULL, 2) == 0);
    inherited_fill(0, INHERITED / 2);

    pthread_t threads[CHURNING_THREADS + 1];
    CHECK(pthread_create(&threads[CHURNING_THREADS], NULL, waiting_thread, NULL) == 0);
    pthread_barrier_wait(&waiting_thread_is_ready);
    for (size_t i = 0; i < CHURNING_THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, churning_thread, (void *)(uintptr_t)i) == 0);
    }

    do {
        fork_and_spawn(scaled_work(forks));
    } while (storm_goes_on());

    atomic_store(&stop, true);
    for (size_t i = 0; i < CHURNING_THREADS + 1; i++) {
        pthread_join(threads[i], NULL);
    }
    use_inherited_blocks();
    printf("fork: ok\n");
    return 0;
}
