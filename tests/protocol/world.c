#include "world.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arena/arena.h"
#include "heap/view.h"
#include "invariants.h"
#include "notes.h"
#include "scheduler.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { REGIONS_MOST = 32 };

#define RANGE_MOST ((uintptr_t)1 << 44)

struct region {
    char *at;
    size_t bytes;
    char *saved;
};

/* What is here is itself part of what is put back, and never changes after world_save. */
static struct region regions[REGIONS_MOST];
static int regions_count;
static bool saved;
static struct view *tls_saved[THREADS_MOST];
static void (*at_thread_exit)(void *);

extern char __data_start[];
extern char _end[];

static void add_region(void *at, size_t bytes)
{
    if (saved || regions_count == REGIONS_MOST)
        sched_violation("the allocator asks for memory during a run: the scenario is too large");
    regions[regions_count++] = (struct region){.at = at, .bytes = bytes};
}

void world_save(void)
{
    add_region(__data_start, (size_t)(_end - __data_start));
    saved = true;
    for (int t = 0; t < THREADS_MOST; t++) {
        struct view **word = sched_tls_word(t);
        tls_saved[t] = word != NULL ? *word : NULL;
    }
    for (int i = 0; i < regions_count; i++)
        regions[i].saved = malloc(regions[i].bytes);
    for (int i = 0; i < regions_count; i++)
        memcpy(regions[i].saved, regions[i].at, regions[i].bytes);
}

void world_restore(void)
{
    for (int i = 0; i < regions_count; i++)
        memcpy(regions[i].at, regions[i].saved, regions[i].bytes);
    for (int t = 0; t < THREADS_MOST; t++) {
        struct view **word = sched_tls_word(t);
        if (word != NULL)
            *word = tls_saved[t];
    }
}

/* ---- Linked with --wrap for these names. */

bool __real_os_commit(void *at, size_t bytes);

/* Metadata and tables are put back between runs; what users get is never written here. */
bool __wrap_os_commit(void *at, size_t bytes)
{
    bool of_users = arena.base != NULL && (uintptr_t)at - (uintptr_t)arena.base < RANGE_MOST;
    if (!__real_os_commit(at, bytes))
        return false;
    if (!of_users)
        add_region(at, bytes);
    return true;
}

bool __wrap_os_barrier(void)
{
    sched_step(OP_BARRIER, &saved, sizeof saved, 0, __builtin_return_address(0));
    return true;
}

/* A block is live from when its user has it. */
bool __wrap_os_purge(void *at, size_t bytes)
{
    for (size_t i = 0; i < NOTES; i++) {
        char *block = arena.base + i * UNIT_SIZE;
        if (notes[i] != 0 && block < (char *)at + bytes && (char *)at < block + BLOCK)
            sched_violation("the pages of block %p, which is live, are given back", block);
    }
    return true;
}

uint64_t __wrap_os_random(void)
{
    return 0;
}

uint64_t __wrap_clock_now_ms(void)
{
    return 1000;
}

int __wrap_os_thread_id(void)
{
    return 1 + sched_self();
}

struct os_thread __wrap_os_thread(void)
{
    return (struct os_thread){__wrap_os_thread_id(), 1};
}

bool __wrap_os_thread_is_gone(struct os_thread thread)
{
    (void)thread;
    return false;
}

int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    *key = 0;
    at_thread_exit = destructor;
    return 0;
}

int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    (void)key;
    (void)value;
    return 0;
}

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    (void)prepare;
    (void)parent;
    (void)child;
    return 0;
}

void world_end_thread(void)
{
    if (view_load()->heap != NULL)
        at_thread_exit(view_load()->heap);
}

_Noreturn void __wrap_fail(const char *format, ...)
{
    sched_violation("the allocator reports: %s", format);
}
