/*
 * Large heaps whose favourite sizes fall just above a size class, and change: classes are opened for them, closed, and
 * opened for others, without a learner, while blocks of all of them come and go, some freed by another thread, and the
 * process's mode changes. Contents survive; in the end the sizes have classes of their own.
 *
 *   fitting_test [--storm]
 */
#include "check.h"
#include "family.h"
#include "process.h"
#include "random.h"
#include "scale.h"
#include "storm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A heap of 16 MiB and more fits classes (policy.fit_bytes); a thread's blocks hold twice that. */
enum { WORKERS = 3, BLOCKS = 24000, LOOKS = 16, LAST_SECONDS = 60 };

/* What every block begins with; the rest is one byte, of its size. */
struct body {
    uint32_t size;
    uint32_t check;
};

enum { FAVOURITES = 4, PHASES = 3 };
static const uint32_t favourites[PHASES][FAVOURITES] = {
    {1040, 2064, 144, 656},
    {1296, 2576, 336, 784},
    {1552, 3088, 208, 1168},
};

static struct body *_Atomic handed_over[WORKERS];
static atomic_size_t phase;
static atomic_size_t left; /* operations of all workers */
static atomic_bool goes_on = true;

static struct body *new_body(uint64_t *random)
{
    const size_t now = atomic_load_explicit(&phase, memory_order_relaxed);
    const bool is_favourite = random_below(random, 16) != 0;
    const size_t size = is_favourite ? favourites[now][random_below(random, FAVOURITES)] : 8 + random_below(random, 4000);
    struct body *body = family.malloc(size);
    CHECK(body != NULL);
    memset(body, (int)(size & 0xff), size);
    *body = (struct body){(uint32_t)size, ~(uint32_t)size};
    return body;
}

static void verify(const struct body *body)
{
    CHECK(body->check == ~body->size);
    const unsigned char *bytes = (const unsigned char *)body;
    for (size_t i = sizeof *body; i < body->size; i += i < 64 ? 1 : 61) {
        CHECK(bytes[i] == (body->size & 0xff));
    }
    CHECK(body->size == sizeof *body || bytes[body->size - 1] == (body->size & 0xff));
}

static void end(struct body *body)
{
    if (body != NULL) {
        verify(body);
        family.free(body);
    }
}

/* Every eighth block that goes is another thread's to free. */
static void let_go(size_t worker, uint64_t *random, struct body *body)
{
    if (random_below(random, 8) == 0) {
        body = atomic_exchange(&handed_over[(worker + 1) % WORKERS], body);
    }
    end(body);
}

static bool has_own_class(uint32_t size)
{
    void *blocks[LOOKS];
    bool fits = true;
    /* A guarded block is as large as was asked for, whatever the class. */
    for (size_t i = 0; i < LOOKS; i++) {
        blocks[i] = family.malloc(size);
        fits = fits && family.usable_size(blocks[i]) == size;
    }
    for (size_t i = 0; i < LOOKS; i++) {
        family.free(blocks[i]);
    }
    return fits;
}

static void *work(void *argument)
{
    const size_t worker = (size_t)(uintptr_t)argument;
    uint64_t random = worker;
    struct body **bodies = family.calloc(BLOCKS, sizeof(struct body *));
    CHECK(bodies != NULL);
    while (atomic_load_explicit(&goes_on, memory_order_relaxed)) {
        const size_t i = random_below(&random, BLOCKS);
        let_go(worker, &random, bodies[i]);
        bodies[i] = new_body(&random);
        atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        end(bodies[i]);
    }
    family.free(bodies);
    end(atomic_exchange(&handed_over[worker], NULL));
    return NULL;
}

static void work_on(size_t operations)
{
    atomic_store(&left, operations);
    while ((ptrdiff_t)atomic_load(&left) > 0) {
        usleep(1000);
    }
}

/* In balanced, as long as it takes: an eighth of the sizes' blocks are of the phase before when it ends. */
static void classes_follow(size_t operations)
{
    const uint64_t began_ms = process_now_ms();
    for (size_t fitting = 0; fitting < 3;) {
        CHECK(process_now_ms() - began_ms < LAST_SECONDS * 1000);
        work_on(operations);
        fitting = 0;
        for (size_t i = 0; i < FAVOURITES; i++) {
            fitting += has_own_class(favourites[atomic_load(&phase)][i]);
        }
    }
}

static void change(const char *mode)
{
    CHECK(family.mode_set(mode) == 0);
}

static void one_round(size_t operations)
{
    static const char *const modes[] = {"minimal", "fast", "balanced", "learning", "minimal", "balanced"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        change(modes[i]);
        atomic_store(&phase, (atomic_load(&phase) + 1) % PHASES);
        work_on(operations / 2);
        family.malloc_trim(0);
        work_on(operations / 2);
    }
    classes_follow(operations);
}

int main(int argc, char **argv)
{
    storm_begin(&argc, argv, 0);
    family_require_hakmem();
    CHECK(!has_own_class(favourites[0][0]));
    pthread_t threads[WORKERS];
    for (size_t i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) == 0);
    }
    const size_t operations = scaled_work(400000);
    classes_follow(operations);
    do {
        one_round(operations);
    } while (storm_goes_on());
    atomic_store(&goes_on, false);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    /* What was handed to one that had ended already. */
    for (size_t i = 0; i < WORKERS; i++) {
        end(atomic_exchange(&handed_over[i], NULL));
    }
    puts("fitting: passed");
    return 0;
}
