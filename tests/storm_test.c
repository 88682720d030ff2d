/*
 * Everything at once: 64 threads that allocate, resize, align and free blocks of each other, verified byte for
 * byte; that end and are replaced, with keys whose destructors allocate in every round; that fork, vfork and
 * spawn while the others go on, with atfork handlers that allocate; and that trim.
 *
 *   storm_test [--storm] [--no-forks]      (TSan supports no work in such a child, and none in
 *                                      the last round of destructors)
 *
 * A hang ends in SIGALRM.
 */
#include "check.h"
#include "family.h"
#include "random.h"
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

enum { SAILORS = 64, PLACES = 2048, HELD = 64, KEYS = 3, SHORT_SECONDS = 5, CHILD_SECONDS = 120 };

extern char **environ;

/* What every block begins with; the rest is a pattern. */
struct cargo {
    size_t bytes;
    uint64_t seed;
};

static _Atomic(struct cargo *) places[PLACES];
static atomic_size_t lives, forks, spawns, trims;
static bool may_fork = true;
static size_t destructor_rounds = 4;
static pthread_key_t keys[KEYS];
static pthread_mutex_t one_fork = PTHREAD_MUTEX_INITIALIZER;

static size_t stride(size_t bytes)
{
    return bytes <= 2048 ? 1 : 509;
}

static unsigned char pattern(uint64_t seed, size_t at)
{
    return (unsigned char)((seed ^ at) * 0x9e3779b97f4a7c15u >> 56);
}

static struct cargo *loaded(void *block, size_t bytes, uint64_t seed)
{
    CHECK(block != NULL);
    struct cargo *cargo = block;
    *cargo = (struct cargo){bytes, seed};
    unsigned char *at = block;
    for (size_t i = sizeof *cargo; i < bytes; i += stride(bytes)) {
        at[i] = pattern(seed, i);
    }
    at[bytes - 1] = bytes > sizeof *cargo ? pattern(seed, bytes - 1) : at[bytes - 1];
    return cargo;
}

static void verify(const struct cargo *cargo, size_t kept)
{
    const unsigned char *at = (const unsigned char *)cargo;
    CHECK(cargo->bytes >= sizeof *cargo && cargo->bytes < (8u << 20));
    for (size_t i = sizeof *cargo; i < kept; i += stride(cargo->bytes)) {
        CHECK(at[i] == pattern(cargo->seed, i));
    }
    CHECK(kept < cargo->bytes || kept == sizeof *cargo || at[kept - 1] == pattern(cargo->seed, kept - 1));
}

static size_t random_bytes(uint64_t *random)
{
    const size_t kind = random_below(random, 500);
    const size_t most = kind == 0 ? 1u << 20 : kind < 5 ? 100000 : kind < 50 ? 8000 : 400;
    return sizeof(struct cargo) + random_below(random, most);
}

static struct cargo *cargo_new(uint64_t *random)
{
    const size_t bytes = random_bytes(random);
    void *block = NULL;
    switch (random_below(random, 10)) {
    case 0:
        block = family.calloc(1, bytes);
        break;
    case 1:
        CHECK(family.posix_memalign(&block, (size_t)16 << random_below(random, 12), bytes) == 0);
        break;
    default:
        block = family.malloc(bytes);
    }
    return loaded(block, bytes, random_next(random));
}

static void cargo_free(struct cargo *cargo)
{
    if (cargo != NULL) {
        verify(cargo, cargo->bytes);
        family.free(cargo);
    }
}

static struct cargo *cargo_resized(struct cargo *cargo, uint64_t *random)
{
    const size_t old = cargo->bytes;
    const size_t bytes = random_bytes(random);
    verify(cargo, old);
    struct cargo *resized = family.realloc(cargo, bytes);
    CHECK(resized != NULL && resized->bytes == old);
    verify(resized, bytes < old ? bytes : old);
    return loaded(resized, bytes, random_next(random));
}

/* A thread's own blocks. */
struct hold {
    struct cargo *cargo[HELD];
    uint64_t random;
};

static void work(struct hold *hold, size_t operations)
{
    uint64_t *random = &hold->random;
    for (size_t i = 0; i < operations; i++) {
        struct cargo **own = &hold->cargo[random_below(random, HELD)];
        switch (random_below(random, 4)) {
        case 0: /* what another thread has left, for what this one has */
            *own = atomic_exchange(&places[random_below(random, PLACES)], *own);
            break;
        case 1:
            if (*own != NULL) {
                *own = cargo_resized(*own, random);
                break;
            }
            /* fall through */
        default:
            cargo_free(*own);
            *own = cargo_new(random);
        }
    }
}

static void empty(struct hold *hold)
{
    for (size_t i = 0; i < HELD; i++) {
        cargo_free(hold->cargo[i]);
        hold->cargo[i] = NULL;
    }
}

/* Half of what a thread has is freed by others. */
static void leave(struct hold *hold)
{
    for (size_t i = 0; i < HELD; i += 2) {
        hold->cargo[i] = atomic_exchange(&places[random_below(&hold->random, PLACES)], hold->cargo[i]);
    }
    empty(hold);
}

static void *short_life(void *argument)
{
    struct hold hold = {.random = (uint64_t)(uintptr_t)argument};
    work(&hold, 60);
    leave(&hold);
    return NULL;
}

static void run_short_life(uint64_t *random)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, short_life, (void *)(uintptr_t)random_next(random)) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void wait_for(pid_t child)
{
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status != 0) {
        fprintf(stderr, "storm: a child ended with status 0x%x\n", (unsigned)status);
    }
    CHECK(status == 0);
}

/* The child has the forking thread's blocks; others may have been in the middle of an exchange. */
static void fork_here(struct hold *hold)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        struct hold fresh = {.random = hold->random};
        empty(hold);
        for (size_t i = 0; i < PLACES; i++) {
            atomic_store(&places[i], NULL); /* half-written ones may be among them */
        }
        work(&fresh, 500);
        if (random_below(&fresh.random, 4) == 0) {
            run_short_life(&fresh.random);
        }
        if (random_below(&fresh.random, 8) == 0) {
            const pid_t grandchild = fork();
            if (grandchild == 0) {
                work(&fresh, 100);
                _exit(0);
            }
            wait_for(grandchild);
        }
        family.malloc_trim(0);
        empty(&fresh);
        _exit(0);
    }
    wait_for(child);
    atomic_fetch_add(&forks, 1);
}

static void spawn_here(uint64_t *random)
{
    char *const arguments[] = {(char *)"true", NULL};
    pid_t child = 0;
    if (random_below(random, 2) == 0) {
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
    } else {
        child = vfork();
        if (child == 0) {
            execve("/bin/true", arguments, environ);
            _exit(1);
        }
    }
    wait_for(child);
    atomic_fetch_add(&spawns, 1);
}

static void something_rare(struct hold *hold)
{
    const size_t what = random_below(&hold->random, 40);
    if (what == 0) {
        family.malloc_trim(0);
        atomic_fetch_add(&trims, 1);
    } else if (what < 4 && may_fork && pthread_mutex_trylock(&one_fork) == 0) {
        if (what == 1) {
            spawn_here(&hold->random);
        } else {
            fork_here(hold);
        }
        pthread_mutex_unlock(&one_fork);
    } else if (what < 10) {
        run_short_life(&hold->random);
    }
}

/* Allocates and frees in every round of destructors but the last, and in that frees. */
static void destroy_key(void *argument)
{
    struct cargo *cargo = argument;
    struct hold hold = {.random = cargo->seed};
    work(&hold, 20);
    leave(&hold);
    const uintptr_t key = cargo->seed % KEYS;
    const uint64_t left = cargo->seed / KEYS % 4;
    cargo_free(cargo);
    if (left > 0) {
        CHECK(pthread_setspecific(keys[key], loaded(family.malloc(64), 64, (left - 1) * KEYS + key)) == 0);
    }
}

/* All that is to be shown has been. */
static bool goes_on(void)
{
    return storm_goes_on() || (may_fork && (forks == 0 || spawns == 0));
}

static void *sailor(void *argument)
{
    static _Thread_local struct hold hold;
    hold = (struct hold){.random = (uint64_t)(uintptr_t)argument};
    for (uintptr_t key = 0; key < KEYS; key++) {
        const uint64_t rounds = random_below(&hold.random, destructor_rounds);
        CHECK(pthread_setspecific(keys[key], loaded(family.malloc(64), 64, rounds * KEYS + key)) == 0);
    }
    for (size_t left = random_below(&hold.random, 100); left > 0 && goes_on(); left--) {
        work(&hold, 1 + random_below(&hold.random, 400));
        something_rare(&hold);
    }
    leave(&hold);
    /* glibc frees the text after the last round of destructors. */
    CHECK(strlen(strerror(123456)) != 0);
    atomic_fetch_add(&lives, 1);
    return NULL;
}

/* Keeps one sailor at sea. */
static void *recruit(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    while (goes_on()) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, sailor, (void *)(uintptr_t)random_next(&random)) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

static void *prepared;

static void before_fork(void)
{
    prepared = family.malloc(3000);
    CHECK(prepared != NULL);
}

static void after_fork(void)
{
    prepared = family.realloc(prepared, 300000);
    CHECK(prepared != NULL);
    family.free(prepared);
}

int main(int argc, char **argv)
{
    family_require_hakmem();
    storm_begin(&argc, argv, SHORT_SECONDS);
    may_fork = argc < 2 || strcmp(argv[1], "--no-forks") != 0;
    destructor_rounds -= may_fork ? 0 : 1;
    alarm(storm_seconds() + 2 * CHILD_SECONDS);
    if (may_fork) {
        CHECK(pthread_atfork(before_fork, after_fork, after_fork) == 0);
    }
    for (size_t key = 0; key < KEYS; key++) {
        CHECK(pthread_key_create(&keys[key], destroy_key) == 0);
    }
    printf("storm: %d threads for %u seconds\n", SAILORS, storm_seconds());
    fflush(stdout);
    pthread_t threads[SAILORS];
    for (size_t i = 0; i < SAILORS; i++) {
        CHECK(pthread_create(&threads[i], NULL, recruit, (void *)(uintptr_t)(i + 1)) == 0);
    }
    for (size_t i = 0; i < SAILORS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    for (size_t i = 0; i < PLACES; i++) {
        cargo_free(atomic_exchange(&places[i], NULL));
    }
    CHECK(!may_fork || (forks > 0 && spawns > 0));
    printf("storm: ok, %zu threads lived, %zu forks, %zu spawned, %zu trims\n", lives, forks, spawns, trims);
    return 0;
}
