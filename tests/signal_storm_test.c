/*
 * Everything at once, on more threads than there are processors: small, large, aligned and growing blocks that
 * any thread may free; threads that end and are replaced; forks, vforks and spawned programs from any of them, the
 * children working on; trims; signal handlers that allocate. Every block is checked before it is freed.
 *
 *   signal_storm_test [--storm]
 */
#include "check.h"
#include "family.h"
#include "process.h"
#include "random.h"
#include "storm.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 64,
    SLOTS = 16384,
    SHORT_SECONDS = 8,
    HANG_SECONDS = 100,
    CHILD_OPERATIONS = 300,
    SIGNAL_US = 300,
};

/* What every block begins with; the last byte is the mark too. */
struct block {
    size_t size;
    uint64_t mark;
};

static struct block *slots[SLOTS]; /* published: complete, and whoever takes it out owns it */
static bool stop;
static size_t operations;
static size_t forks;
static size_t threads_ended;
static size_t handler_operations;

static uint64_t mark_of(const struct block *block)
{
    return (uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15u ^ block->size;
}

static void complete(struct block *block, size_t size)
{
    block->size = size;
    block->mark = mark_of(block);
    ((unsigned char *)block)[size - 1] = (unsigned char)size;
}

static void check(const struct block *block)
{
    CHECK(block->mark == mark_of(block));
    CHECK(block->size == sizeof *block || ((const unsigned char *)block)[block->size - 1] == (unsigned char)block->size);
}

static size_t choose_size(uint64_t *random)
{
    size_t kind = random_below(random, 400);
    size_t most = kind == 0 ? 3000000 : kind < 8 ? 150000 : kind < 40 ? 8000 : 500;
    return sizeof(struct block) + 1 + random_below(random, most);
}

static struct block *make(uint64_t *random)
{
    size_t size = choose_size(random);
    struct block *block;
    switch (random_below(random, 12)) {
    case 0:
        block = family.calloc(1, size);
        CHECK(block == NULL || (block->mark == 0 && ((unsigned char *)block)[size - 1] == 0));
        break;
    case 1:
        block = family.memalign((size_t)32 << random_below(random, 9), size);
        break;
    default:
        block = family.malloc(size);
    }
    if (block != NULL)
        complete(block, size);
    return block;
}

static struct block *grow(struct block *block, uint64_t *random)
{
    size_t size = choose_size(random);
    size_t old_size = block->size;
    uint64_t old_mark = block->mark;
    struct block *moved = family.realloc(block, size);
    CHECK(moved != NULL && moved->size == old_size && moved->mark == old_mark);
    complete(moved, size);
    return moved;
}

static void operate(uint64_t *random, bool in_handler)
{
    struct block **slot = &slots[random_below(random, SLOTS)];
    struct block *mine = NULL;
    if (random_below(random, 5) != 0) {
        mine = make(random);
        CHECK(mine != NULL || in_handler); /* a handler is refused when its thread holds a lock */
    }
    struct block *old = __atomic_exchange_n(slot, mine, __ATOMIC_ACQ_REL);
    if (old == NULL)
        return;
    check(old);
    if (!in_handler && random_below(random, 8) == 0) {
        old = grow(old, random);
        check(old);
    }
    family.free(old);
}

static _Thread_local uint64_t handler_random;
static _Thread_local bool in_handler_now;

static void handler(int number)
{
    (void)number;
    if (in_handler_now)
        return;
    in_handler_now = true;
    for (int i = 0; i < 3; i++)
        operate(&handler_random, true);
    in_handler_now = false;
    __atomic_fetch_add(&handler_operations, 3, __ATOMIC_RELAXED);
}

/* The blocks of the other threads are the child's too. */
static _Noreturn void work_in_child(uint64_t random)
{
    alarm(HANG_SECONDS);
    for (int i = 0; i < CHILD_OPERATIONS; i++)
        operate(&random, false);
    if (random_below(&random, 4) == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            operate(&random, false);
            _exit(0);
        }
        int status = -1;
        CHECK(grandchild > 0 && waitpid(grandchild, &status, 0) == grandchild && status == 0);
    }
    _exit(0);
}

static void await(pid_t child)
{
    int status = -1;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    __atomic_fetch_add(&forks, 1, __ATOMIC_RELAXED);
}

/* One thread forks at a time: a handler that interrupts glibc's fork while that holds its lock must not allocate when
 * another thread forks too (docs/using.md). */
static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;

static void fork_once(uint64_t *random)
{
    CHECK(pthread_mutex_lock(&forking) == 0);
    pid_t child = fork();
    if (child == 0)
        work_in_child(*random);
    CHECK(pthread_mutex_unlock(&forking) == 0);
    await(child);
}

static char *const true_arguments[] = {"true", NULL};

static void vfork_once(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execv("/bin/true", true_arguments);
        _exit(127);
    }
    await(child);
}

static void spawn_once(void)
{
    pid_t child = -1;
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, true_arguments, environ) == 0);
    await(child);
}

static void *work(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    handler_random = random ^ 0x5555;
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL) == 0);
    for (size_t left = random_below(&random, 4000); left > 0 && !__atomic_load_n(&stop, __ATOMIC_RELAXED); left--) {
        operate(&random, false);
        switch (random_below(&random, 40000)) {
        case 0:
        case 1:
        case 2:
            fork_once(&random);
            break;
        case 3:
            vfork_once();
            break;
        case 4:
            spawn_once();
            break;
        case 5:
        case 6:
            family.malloc_trim(0);
            break;
        }
        __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Keeps one place in the storm taken by one short thread after another. */
static void *replace_threads(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, (void *)(uintptr_t)random_next(&random)) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        __atomic_fetch_add(&threads_ended, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Handlers that allocate where other libraries' fork handlers run. */
static void allocate_at_fork(void)
{
    uint64_t random = 17;
    operate(&random, true);
}

static void watch(void)
{
    uint64_t last_change = process_now_ms();
    size_t seen = 0;
    while (storm_goes_on()) {
        usleep(100000);
        size_t now = __atomic_load_n(&operations, __ATOMIC_RELAXED);
        if (now != seen)
            last_change = process_now_ms();
        seen = now;
        CHECK(process_now_ms() - last_change < HANG_SECONDS * 1000);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    storm_begin(&argc, argv, SHORT_SECONDS);
    uint64_t seed = (uint64_t)getpid() * 0x9e3779b97f4a7c15u;
    family_require_hakmem();
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("seed %#llx, %u s\n", (unsigned long long)seed, storm_seconds());
    CHECK(pthread_atfork(allocate_at_fork, allocate_at_fork, allocate_at_fork) == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    CHECK(pthread_sigmask(SIG_BLOCK, &alarm_only, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, replace_threads, (void *)(uintptr_t)random_next(&seed)) == 0);
    struct itimerval often = {{0, SIGNAL_US}, {0, SIGNAL_US}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    watch();
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i] != NULL)
            check(slots[i]);
        family.free(slots[i]);
    }
    family.malloc_trim(0);
    printf("%zu operations, %zu in handlers, %zu threads, %zu forks, %zu MiB at the end\n", operations,
           handler_operations, threads_ended, forks, process_rss_bytes() >> 20);
    CHECK(operations > 1000 && threads_ended > THREADS);
    return 0;
}
