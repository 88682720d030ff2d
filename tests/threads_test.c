/*
 * The life of threads: thousands of short ones one after another and side by side, more than there are cores,
 * and thread-specific data whose destructors allocate and free in every round, after the allocator's own.
 *
 *   threads_test [--storm] [ROUNDS]
 *
 * ROUNDS of destructors that allocate, by default all that the system runs. (TSan's own destructor ends the
 * thread for TSan in the last round, after which instrumented code crashes.)
 */
#include "check.h"
#include "family.h"
#include "process.h"
#include "random.h"
#include "scale.h"
#include "storm.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SPAWNERS = 8, MANY = 64, KEYS = 4 };

static void churn(uint64_t seed, size_t operations)
{
    enum { SLOTS = 64 };
    unsigned char *slots[SLOTS] = {NULL};
    size_t sizes[SLOTS] = {0};
    uint64_t random = seed;
    for (size_t i = 0; i < operations; i++) {
        const size_t slot = random_below(&random, SLOTS);
        if (slots[slot] != NULL) {
            CHECK(slots[slot][0] == slot && slots[slot][sizes[slot] - 1] == slot);
        }
        family.free(slots[slot]);
        sizes[slot] = 1 + random_below(&random, random_below(&random, 200) == 0 ? 100000 : 600);
        slots[slot] = family.malloc(sizes[slot]);
        CHECK(slots[slot] != NULL);
        memset(slots[slot], (int)slot, sizes[slot]);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        family.free(slots[i]);
    }
}

static void *short_thread(void *argument)
{
    churn((uint64_t)(uintptr_t)argument, 50);
    return NULL;
}

static void *spawn_short_threads(void *argument)
{
    const size_t count = (size_t)(uintptr_t)argument;
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, short_thread, (void *)(uintptr_t)i) == 0);
        pthread_join(thread, NULL);
    }
    return NULL;
}

static void one_after_another(void)
{
    const size_t count = scaled_work(5000);
    printf("threads: %zu short ones, one after another\n", count);
    fflush(stdout);
    spawn_short_threads((void *)(uintptr_t)(count / 10));
    const size_t before = process_rss_bytes();
    spawn_short_threads((void *)(uintptr_t)(count - count / 10));
    const size_t after = process_rss_bytes();
    printf("threads: %zu KiB resident, %zu KiB after the first tenth\n", after >> 10, before >> 10);
    CHECK(after < before + scaled_rss(4u << 20));
}

static void side_by_side(void)
{
    const size_t each = scaled_work(5000) / SPAWNERS;
    printf("threads: %d times %zu short ones at once\n", SPAWNERS, each);
    fflush(stdout);
    const size_t before = process_rss_bytes();
    pthread_t threads[SPAWNERS];
    for (size_t i = 0; i < SPAWNERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, spawn_short_threads, (void *)(uintptr_t)each) == 0);
    }
    for (size_t i = 0; i < SPAWNERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(process_rss_bytes() < before + scaled_rss(32u << 20));
}

static pthread_barrier_t all_alive;

static void *long_thread(void *argument)
{
    churn((uint64_t)(uintptr_t)argument, 10);
    pthread_barrier_wait(&all_alive);
    churn((uint64_t)(uintptr_t)argument, scaled_work(20000));
    return NULL;
}

static void more_than_cores(void)
{
    printf("threads: %d alive at once\n", MANY);
    fflush(stdout);
    pthread_t threads[MANY];
    CHECK(pthread_barrier_init(&all_alive, NULL, MANY) == 0);
    for (size_t i = 0; i < MANY; i++) {
        CHECK(pthread_create(&threads[i], NULL, long_thread, (void *)(uintptr_t)i) == 0);
    }
    for (size_t i = 0; i < MANY; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&all_alive);
}

/* The value of a key: it is replaced by a new one in every round of destructors but the last. */
struct keyed {
    size_t key;
    size_t round;
};

static pthread_key_t keys[KEYS];
static atomic_size_t destructions;
static size_t destructor_rounds = PTHREAD_DESTRUCTOR_ITERATIONS;

static void set_key(size_t key, size_t round)
{
    struct keyed *value = family.malloc(sizeof *value);
    CHECK(value != NULL);
    *value = (struct keyed){key, round};
    CHECK(pthread_setspecific(keys[key], value) == 0);
}

static void destroy_key(void *argument)
{
    struct keyed *value = argument;
    const struct keyed old = *value;
    family.free(value);
    churn(old.round, 30);
    atomic_fetch_add(&destructions, 1);
    if (old.round + 1 < destructor_rounds) {
        set_key(old.key, old.round + 1);
    }
}

static void *keyed_thread(void *argument)
{
    (void)argument;
    churn(1, 30);
    for (size_t key = 0; key < KEYS; key++) {
        set_key(key, 0);
    }
    /* glibc allocates the text and frees it after the last round of destructors. */
    CHECK(strlen(strerror(123456)) != 0);
    return NULL;
}

/* A thread whose first allocation of all is in a destructor. The key's value is the number of rounds until
 * then; a thread that allocates first in the last round gives the allocator no chance to hear of its end. */
static pthread_key_t silent_key;

static void *silent_thread(void *argument)
{
    CHECK(pthread_setspecific(silent_key, argument) == 0);
    return NULL;
}

static void destroy_silent(void *argument)
{
    const uintptr_t rounds = (uintptr_t)argument;
    if (rounds > 1) {
        CHECK(pthread_setspecific(silent_key, (void *)(rounds - 1)) == 0);
        return;
    }
    churn(2, 30);
    atomic_fetch_add(&destructions, 1);
}

static void run_pair(void *(*function)(void *), void *argument)
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, function, argument) == 0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void destructors_allocate(void)
{
    const size_t repetitions = scaled_work(500);
    printf("threads: %zu with destructors that allocate\n", 2 * repetitions);
    fflush(stdout);
    destructions = 0;
    size_t before = 0;
    for (size_t i = 0; i < repetitions; i++) {
        run_pair(keyed_thread, NULL);
        if (i == repetitions / 10) {
            before = process_rss_bytes();
        }
    }
    CHECK(destructions == repetitions * 2 * KEYS * destructor_rounds);
    CHECK(process_rss_bytes() < before + scaled_rss(8u << 20));
}

/* New threads get the stacks, and with them the thread-local storage, of those that the allocator may not have
 * seen go. A trim makes it look at all threads that it knows. */
static void first_allocation_in_round(size_t round)
{
    const size_t repetitions = scaled_work(500);
    printf("threads: %zu whose first allocation is in round %zu of destructors\n", 2 * repetitions, round);
    fflush(stdout);
    destructions = 0;
    size_t before = 0;
    for (size_t i = 0; i < repetitions; i++) {
        run_pair(silent_thread, (void *)(uintptr_t)round);
        if (i % 10 == 0) {
            family.malloc_trim(0);
            run_pair(short_thread, NULL);
        }
        if (i == repetitions / 10) {
            before = process_rss_bytes();
        }
    }
    CHECK(destructions == repetitions * 2);
    CHECK(process_rss_bytes() < before + scaled_rss(8u << 20));
}

static void *trim_always(void *ended)
{
    while (!atomic_load((atomic_bool *)ended))
        family.malloc_trim(0);
    return NULL;
}

/* The same while somebody trims, and the stack, with the thread's words, is unmapped as soon as the thread is joined:
 * sooner than the kernel says that it is gone. */
static void stacks_vanish(void)
{
    enum { STACK = 1 << 17 };
    const size_t repetitions = scaled_work(1000);
    printf("threads: %zu on stacks that are unmapped while others trim\n", repetitions);
    fflush(stdout);
    destructions = 0;
    atomic_bool ended = false;
    pthread_t trimmer;
    CHECK(pthread_create(&trimmer, NULL, trim_always, &ended) == 0);
    for (size_t i = 0; i < repetitions; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stack != MAP_FAILED);
        CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, STACK) == 0);
        CHECK(pthread_create(&thread, &attributes, silent_thread, (void *)(uintptr_t)destructor_rounds) == 0);
        CHECK(pthread_join(thread, NULL) == 0 && munmap(stack, STACK) == 0);
        pthread_attr_destroy(&attributes);
    }
    atomic_store(&ended, true);
    CHECK(pthread_join(trimmer, NULL) == 0);
    CHECK(destructions == repetitions);
}

int main(int argc, char **argv)
{
    family_require_hakmem();
    storm_begin(&argc, argv, 0);
    if (argc > 1) {
        destructor_rounds = strtoul(argv[1], NULL, 10);
    }
    for (size_t key = 0; key < KEYS; key++) {
        CHECK(pthread_key_create(&keys[key], destroy_key) == 0);
    }
    CHECK(pthread_key_create(&silent_key, destroy_silent) == 0);
    do {
        one_after_another();
        side_by_side();
        more_than_cores();
        destructors_allocate();
        /* TSan leaves no round after the one that it may run in. */
        const bool all_rounds = destructor_rounds == PTHREAD_DESTRUCTOR_ITERATIONS;
        for (size_t round = 1; all_rounds && round <= destructor_rounds; round++) {
            first_allocation_in_round(round);
        }
        if (all_rounds) {
            stacks_vanish();
        }
    } while (storm_goes_on());
    printf("threads: ok\n");
    return 0;
}
