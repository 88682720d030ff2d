#include "workload.h"

#include "check.h"
#include "family.h"
#include "random.h"
#include "scale.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 400, OPERATIONS = 8000, THREADS = 3, HELD = 300, LARGE_MOST = 2000000, LARGE_FEW = 300000 };

struct work {
    uint64_t random;
    size_t most; /* bytes of a block */
    size_t refused;
};

static unsigned char mark_of(const void *block, size_t size)
{
    return (unsigned char)((uintptr_t)block >> 4 ^ size);
}

static void fill(unsigned char *block, size_t size)
{
    memset(block, mark_of(block, size), size < 5000 ? size : 5000);
    block[size - 1] = mark_of(block, size);
}

static void check(const unsigned char *block, size_t size)
{
    CHECK(block[0] == mark_of(block, size) && block[size - 1] == mark_of(block, size));
}

static unsigned char *zeroed(size_t size)
{
    unsigned char *block = family.calloc(1, size);
    for (size_t i = 0; block != NULL && i < size; i++)
        CHECK(block[i] == 0);
    return block;
}

static size_t choose_size(struct work *work)
{
    switch (random_below(&work->random, 40)) {
    case 0:
        return 1 + random_below(&work->random, work->most);
    case 1:
    case 2:
        return 1 + random_below(&work->random, 100000);
    default:
        return 1 + random_below(&work->random, 1200);
    }
}

static void *request(struct work *work, size_t size)
{
    errno = 0;
    void *block = random_below(&work->random, 4) != 0   ? family.malloc(size)
                  : random_below(&work->random, 2) != 0 ? zeroed(size)
                                                        : family.memalign(256, size);
    if (block == NULL) {
        CHECK(errno == ENOMEM);
        work->refused++;
    } else {
        fill(block, size);
    }
    return block;
}

/* Content is copied whether the block moves or stays; refused, it is as before. */
static void resize(struct work *work, unsigned char **block, size_t *size, size_t wanted)
{
    unsigned char first = **block;
    errno = 0;
    unsigned char *moved = family.realloc(*block, wanted);
    if (moved == NULL) {
        CHECK(errno == ENOMEM);
        work->refused++;
        check(*block, *size);
        return;
    }
    CHECK(moved[0] == first);
    *block = moved;
    *size = wanted;
    fill(moved, wanted);
}

static void churn(struct work *work)
{
    static _Thread_local unsigned char *blocks[SLOTS];
    static _Thread_local size_t sizes[SLOTS];
    for (size_t i = 0; i < scaled_work(OPERATIONS); i++) {
        size_t slot = random_below(&work->random, SLOTS);
        size_t size = choose_size(work);
        if (blocks[slot] != NULL) {
            check(blocks[slot], sizes[slot]);
            if (random_below(&work->random, 4) == 0) {
                resize(work, &blocks[slot], &sizes[slot], size);
                continue;
            }
            family.free(blocks[slot]);
        }
        blocks[slot] = request(work, size);
        sizes[slot] = size;
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        if (blocks[slot] != NULL)
            check(blocks[slot], sizes[slot]);
        family.free(blocks[slot]);
        blocks[slot] = NULL;
    }
}

static void *churn_in_thread(void *argument)
{
    churn(argument);
    return NULL;
}

static void churn_in_threads(struct work *total)
{
    pthread_t threads[THREADS];
    struct work works[THREADS];
    bool started[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        works[i] = (struct work){.random = total->random + i, .most = total->most};
        started[i] = pthread_create(&threads[i], NULL, churn_in_thread, &works[i]) == 0;
        total->refused += !started[i];
    }
    for (int i = 0; i < THREADS; i++) {
        if (started[i])
            CHECK(pthread_join(threads[i], NULL) == 0);
        total->refused += works[i].refused;
    }
}

static void churn_in_child(struct work *work)
{
    pid_t child = fork();
    if (child == 0) {
        struct work own = {.random = work->random + 77, .most = work->most};
        churn(&own);
        _exit(own.refused != 0);
    }
    int status = 0;
    if (child < 0 || (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1))
        work->refused++;
    else
        CHECK(status == 0);
}

size_t workload_try(void)
{
    struct work work = {.random = 5, .most = LARGE_MOST};
    churn(&work);
    family.malloc_trim(0);
    churn_in_threads(&work);
    churn_in_child(&work);
    family.malloc_trim(0);
    churn(&work);
    return work.refused;
}

void workload_run(void)
{
    CHECK(workload_try() == 0);
}

void workload_run_alone(void)
{
    struct work work = {.random = 5, .most = LARGE_FEW};
    churn(&work);
    CHECK(work.refused == 0);
}

static unsigned char *held[HELD];
static size_t held_sizes[HELD];

void workload_hold(void)
{
    struct work work = {.random = 3, .most = LARGE_MOST};
    for (int i = 0; i < HELD; i++) {
        held_sizes[i] = choose_size(&work) % LARGE_FEW + 1;
        held[i] = family.malloc(held_sizes[i]);
        CHECK(held[i] != NULL);
        fill(held[i], held_sizes[i]);
    }
}

void workload_check_held(void)
{
    for (int i = 0; i < HELD; i++) {
        check(held[i], held_sizes[i]);
        family.free(held[i]);
        held[i] = NULL;
    }
}
