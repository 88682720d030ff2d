/*
 * Blocks freed by another thread than the one that allocated them: in one direction, round a ring, from many
 * to one and from one to many, and from threads that are gone. Contents survive and memory stays bounded.
 *
 *   remote_test [--storm]
 */
#include "check.h"
#include "family.h"
#include "process.h"
#include "random.h"
#include "scale.h"
#include "storm.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RING_THREADS = 8, CROWD = 7 };

/* What every block begins with. */
struct parcel {
    struct parcel *next;
    size_t size;
};

static struct parcel *parcel_new(uint64_t *random)
{
    const size_t size = sizeof(struct parcel) +
                        (random_below(random, 1000) == 0 ? random_below(random, 100000) : random_below(random, 250));
    struct parcel *parcel = family.malloc(size);
    CHECK(parcel != NULL);
    parcel->next = NULL;
    parcel->size = size;
    memset(parcel + 1, (int)(size & 0xff), size - sizeof *parcel);
    return parcel;
}

static void parcel_free(struct parcel *parcel)
{
    const size_t body = parcel->size - sizeof *parcel;
    const unsigned char *bytes = (const unsigned char *)(parcel + 1);
    CHECK(body == 0 || (bytes[0] == (parcel->size & 0xff) && bytes[body - 1] == (parcel->size & 0xff)));
    family.free(parcel);
}

/* A stack to which many push and from which each pop takes everything. `outstanding` bounds the test's own
 * memory: a pusher waits while there are too many parcels. */
struct post {
    _Atomic(struct parcel *) top;
    atomic_size_t outstanding;
    atomic_size_t to_push;
    atomic_size_t to_free;
};
enum { OUTSTANDING_LIMIT = 5000 };

static void post_push(struct post *post, struct parcel *parcel)
{
    while (atomic_load_explicit(&post->outstanding, memory_order_relaxed) > OUTSTANDING_LIMIT) {
        sched_yield();
    }
    atomic_fetch_add_explicit(&post->outstanding, 1, memory_order_relaxed);
    struct parcel *top = atomic_load_explicit(&post->top, memory_order_relaxed);
    do {
        parcel->next = top;
    } while (!atomic_compare_exchange_weak_explicit(&post->top, &top, parcel, memory_order_release,
                                                    memory_order_relaxed));
}

/* Takes one off a shared count; false when it has run out. */
static bool count_down(atomic_size_t *counter)
{
    size_t left = atomic_load_explicit(counter, memory_order_relaxed);
    while (left != 0) {
        if (atomic_compare_exchange_weak_explicit(counter, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void *pusher(void *argument)
{
    struct post *post = argument;
    uint64_t random = (uint64_t)(uintptr_t)&random;
    while (count_down(&post->to_push)) {
        post_push(post, parcel_new(&random));
    }
    return NULL;
}

static void *freer(void *argument)
{
    struct post *post = argument;
    while (atomic_load(&post->to_free) != 0) {
        struct parcel *parcel = atomic_exchange_explicit(&post->top, NULL, memory_order_acquire);
        if (parcel == NULL) {
            sched_yield();
            continue;
        }
        while (parcel != NULL) {
            struct parcel *next = parcel->next;
            parcel_free(parcel);
            atomic_fetch_sub_explicit(&post->outstanding, 1, memory_order_relaxed);
            atomic_fetch_sub(&post->to_free, 1);
            parcel = next;
        }
    }
    return NULL;
}

static void storm(const char *name, size_t pushers, size_t freers, size_t parcels)
{
    printf("remote: %s, %zu blocks\n", name, parcels);
    fflush(stdout);
    static struct post post;
    post.to_push = parcels;
    post.to_free = parcels;
    pthread_t threads[2 * CROWD];
    CHECK(pushers + freers <= 2 * CROWD);
    const size_t before = process_rss_bytes();
    for (size_t i = 0; i < pushers + freers; i++) {
        CHECK(pthread_create(&threads[i], NULL, i < pushers ? pusher : freer, &post) == 0);
    }
    size_t most = before;
    while (atomic_load(&post.to_free) != 0) {
        usleep(10000);
        const size_t now = process_rss_bytes();
        most = now > most ? now : most;
    }
    for (size_t i = 0; i < pushers + freers; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(post.outstanding == 0 && post.top == NULL);
    printf("remote: %s, at most %zu KiB more resident\n", name, (most - before) >> 10);
    CHECK(most < before + scaled_rss(64u << 20));
}

/* Each thread hands a parcel to the next one and frees the one that it was handed. */
struct ring_place {
    _Atomic(struct parcel *) parcel;
    size_t number;
    size_t rounds;
};
static struct ring_place ring[RING_THREADS];

static void *ring_thread(void *argument)
{
    struct ring_place *own = argument;
    struct ring_place *next = &ring[(own->number + 1) % RING_THREADS];
    uint64_t random = own->number;
    for (size_t round = 0; round < own->rounds; round++) {
        while (atomic_load_explicit(&next->parcel, memory_order_relaxed) != NULL) {
            sched_yield();
        }
        atomic_store_explicit(&next->parcel, parcel_new(&random), memory_order_release);
        struct parcel *parcel;
        while ((parcel = atomic_exchange_explicit(&own->parcel, NULL, memory_order_acquire)) == NULL) {
            sched_yield();
        }
        parcel_free(parcel);
    }
    return NULL;
}

static void round_a_ring(void)
{
    const size_t rounds = scaled_work(20000);
    printf("remote: a ring of %d threads, %zu rounds\n", RING_THREADS, rounds);
    fflush(stdout);
    const size_t before = process_rss_bytes();
    pthread_t threads[RING_THREADS];
    for (size_t i = 0; i < RING_THREADS; i++) {
        ring[i].number = i;
        ring[i].rounds = rounds;
        CHECK(pthread_create(&threads[i], NULL, ring_thread, &ring[i]) == 0);
    }
    for (size_t i = 0; i < RING_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(process_rss_bytes() < before + scaled_rss(64u << 20));
}

enum { BATCH = 1000, GENERATIONS = 10 };

struct batch {
    struct parcel *parcels[BATCH];
    uint64_t random;
};

static void *fill_batch(void *argument)
{
    struct batch *batch = argument;
    for (size_t i = 0; i < BATCH; i++) {
        batch->parcels[i] = parcel_new(&batch->random);
    }
    return NULL;
}

static void *free_batch(void *argument)
{
    struct batch *batch = argument;
    for (size_t i = 0; i < BATCH; i++) {
        if (batch->parcels[i] != NULL) {
            parcel_free(batch->parcels[i]);
            batch->parcels[i] = NULL;
        }
    }
    return NULL;
}

static void run_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    pthread_join(thread, NULL);
}

/* Owners are gone when their blocks are freed, some generations later, by the main thread or by a thread that
 * exits right after. */
static void from_threads_that_are_gone(void)
{
    const size_t rounds = scaled_work(1000);
    printf("remote: blocks of %zu threads that are gone\n", rounds);
    fflush(stdout);
    static struct batch batches[GENERATIONS];
    size_t before = 0;
    for (size_t round = 0; round < rounds; round++) {
        struct batch *batch = &batches[round % GENERATIONS];
        if (round % 2 == 0) {
            free_batch(batch);
        } else {
            run_thread(free_batch, batch);
        }
        run_thread(fill_batch, batch);
        if (round == 4 * GENERATIONS) {
            before = process_rss_bytes();
        }
    }
    for (size_t i = 0; i < GENERATIONS; i++) {
        free_batch(&batches[i]);
    }
    CHECK(process_rss_bytes() < before + scaled_rss(32u << 20));
}

/* The main thread's blocks, freed by threads that exit with a few in hand each time. */
static void by_threads_that_go(void)
{
    const size_t rounds = scaled_work(1000);
    printf("remote: blocks freed by %zu threads that exit at once\n", rounds);
    fflush(stdout);
    static struct batch batch;
    size_t before = 0;
    for (size_t round = 0; round < rounds; round++) {
        fill_batch(&batch);
        run_thread(free_batch, &batch);
        if (round == 40) {
            before = process_rss_bytes();
        }
    }
    CHECK(process_rss_bytes() < before + scaled_rss(32u << 20));
}

static void all_once(void)
{
    storm("one way", 1, 1, scaled_work(3000000));
    storm("many to one", CROWD, 1, scaled_work(1500000));
    storm("one to many", 1, CROWD, scaled_work(1500000));
    storm("many to many", CROWD, CROWD, scaled_work(1500000));
    round_a_ring();
    from_threads_that_are_gone();
    by_threads_that_go();
}

int main(int argc, char **argv)
{
    family_require_hakmem();
    storm_begin(&argc, argv, 0);
    do {
        all_once();
    } while (storm_goes_on());
    printf("remote: ok\n");
    return 0;
}
