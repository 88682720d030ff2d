/*
 * Threads whose first calls come while another thread starts the allocator: whatever they ask with, NULL included, is served.
 * In a child each time, for a process starts once. (On the libc names a thread's creation has allocated before.)
 */
#include "check.h"
#include "child.h"
#include "family.h"
#include "scale.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CALLERS = 4, SIZE = 100 };

static atomic_uint arrived;

static void *malloc_first(void)
{
    return family.malloc(SIZE);
}

static void *realloc_first(void)
{
    return family.realloc(NULL, SIZE);
}

static void *free_first(void)
{
    family.free(NULL);
    return family.malloc(SIZE);
}

static void *usable_size_first(void)
{
    CHECK(family.usable_size(NULL) == 0);
    return family.malloc(SIZE);
}

static void *calloc_first(void)
{
    return family.calloc(1, SIZE);
}

static void *aligned_first(void)
{
    return family.memalign(64, SIZE);
}

static void *(*const first_calls[])(void) = {malloc_first,      realloc_first, free_first,
                                             usable_size_first, calloc_first,  aligned_first};
enum { FIRST_CALLS = sizeof first_calls / sizeof first_calls[0] };

static void *call_first(void *argument)
{
    void *(*const *first)(void) = argument;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < CALLERS) {
        sched_yield();
    }
    unsigned char *block = (*first)();
    CHECK(block != NULL);
    memset(block, 1, SIZE);
    family.free(block);
    return NULL;
}

/* All pairs of calls meet, round after round, and the last two threads add what `round` says. */
static void start(uintptr_t round)
{
    pthread_t callers[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        const size_t call = i == 0 ? round : i == 1 ? round / FIRST_CALLS : round + i;
        CHECK(pthread_create(&callers[i], NULL, call_first, (void *)&first_calls[call % FIRST_CALLS]) == 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        CHECK(pthread_join(callers[i], NULL) == 0);
    }
}

int main(void)
{
    family_require_hakmem();
    const size_t rounds = FIRST_CALLS * FIRST_CALLS + scaled_work(1000);
    for (size_t round = 0; round < rounds; round++) {
        struct child child = child_run(start, round);
        if (child.status != 0) {
            fprintf(stderr, "first calls: round %zu ended with status 0x%x\n%s", round, (unsigned)child.status, child.output);
            return 1;
        }
    }
    printf("first calls: %zu starts\n", rounds);
    return 0;
}
