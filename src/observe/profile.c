#include "observe/profile.h"

#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/probe.h"
#include "config/policy.h"
#include "heap/door.h"
#include "heap/fork.h"
#include "heap/keeper.h"
#include "heap/profiler.h"
#include "heap/report.h"
#include "observe/depot.h"
#include "observe/profile_memory.h"
#include "observe/profile_sites.h"
#include "observe/profile_slabs.h"
#include "observe/stack.h"

static bool runs; /* guarded by the profiler's lock */

/* The program's calls. False: there is no memory to keep them. */
static bool take_stack(const struct os_frame *from, uint32_t *stack)
{
    uintptr_t calls[STACK_CALLS_MOST];
    size_t count = stack_take(from, calls, STACK_CALLS_MOST);
    size_t first = stack_own_calls(calls, count);
    *stack = (profile_is_full() ? depot_find : depot_put)(calls + first, count - first);
    return *stack != DEPOT_NONE || count == first;
}

/* `may`: there is memory for the rest of it. */
static struct sample *add_locked(size_t size, uint32_t stack, bool may)
{
    struct sample *sample = may ? sites_add(stack, size, clock_now_ms()) : NULL;
    if (sample == NULL)
        owner_add(&profile_totals.dropped, 1u);
    return sample;
}

static void *take(unsigned class, size_t size, const struct os_frame *from)
{
    uint32_t stack;
    bool kept = take_stack(from, &stack);
    uint64_t weight = 0;
    void *p = NULL;
    lock_take(&profiler_lock);
    struct sample *sample = runs ? add_locked(size, stack, kept && slabs_have_room(class)) : NULL;
    if (sample != NULL) {
        weight = sample->weight;
        p = slabs_take(class, sample);
    }
    lock_drop(&profiler_lock);
    if (p != NULL)
        PROBE3(otel_memory, alloc, p, size, weight);
    return p;
}

static void put(void *p)
{
    struct sample *sample;
    PROBE1(otel_memory, free, p);
    lock_take(&profiler_lock);
    enum slab_verdict verdict = slabs_put(p, &sample);
    if (verdict == SLAB_FINE && sample != NULL)
        sites_remove(sample, clock_now_ms());
    lock_drop(&profiler_lock);
    if (verdict != SLAB_FINE)
        report_refused(verdict, p);
}

/* What it grows by where it stays was not requested, unless each byte counts. */
static bool is_told(const struct sample *sample, size_t size)
{
    return sample != NULL && (size < sample->size || profile_totals.rate == 1);
}

/* No new request: probes are not told. */
static void used(const void *p, size_t size)
{
    lock_take(&profiler_lock);
    struct sample **sample = slabs_sample(p);
    if (sample != NULL && is_told(*sample, size))
        *sample = sites_resize(*sample, size);
    lock_drop(&profiler_lock);
}

static struct sample *note_large(const void *p, size_t size, const struct os_frame *from)
{
    uint32_t stack;
    bool kept = take_stack(from, &stack);
    uint64_t weight = 0;
    lock_take(&profiler_lock);
    struct sample *sample = runs ? add_locked(size, stack, kept) : NULL;
    if (sample != NULL)
        weight = sample->weight;
    lock_drop(&profiler_lock);
    if (sample != NULL)
        PROBE3(otel_memory, alloc, p, size, weight);
    return sample;
}

static struct sample *resized(struct sample *sample, const void *before, const void *p, size_t size)
{
    uint64_t weight = 0;
    lock_take(&profiler_lock);
    sample = sites_resize(sample, size);
    if (sample != NULL)
        weight = sample->weight;
    lock_drop(&profiler_lock);
    PROBE1(otel_memory, free, before);
    if (sample != NULL)
        PROBE3(otel_memory, alloc, p, size, weight);
    return sample;
}

static void freed(struct sample *sample, const void *p)
{
    PROBE1(otel_memory, free, p);
    lock_take(&profiler_lock);
    sites_remove(sample, clock_now_ms());
    lock_drop(&profiler_lock);
}

static const struct profiler profiler = {
    .take = take,
    .put = put,
    .used = used,
    .note = note_large,
    .resized = resized,
    .freed = freed,
};

struct start {
    size_t rate;
    int error;
};

static void start(void *argument)
{
    struct start *wanted = argument;
    lock_take(&profiler_lock);
    if (runs)
        wanted->error = EALREADY;
    else if (!sites_begin(wanted->rate, clock_now_ms()))
        wanted->error = ENOMEM;
    if (wanted->error == 0) {
        runs = true;
        store_release(&current_profiler, &profiler);
        store_release(&policy.profile_bytes, wanted->rate);
    }
    lock_drop(&profiler_lock);
}

int profile_start(size_t rate)
{
    struct start wanted = {.rate = rate != 0 ? rate : PROFILE_RATE_DEFAULT};
    if (rate > PROFILE_RATE_MOST)
        return EINVAL;
    if (keeper_now() != NULL)
        return ENOTSUP;
    if (fork_holds_any_lock())
        return EDEADLK;
    door_visit(start, &wanted);
    return wanted.error;
}

static void stop(void *argument)
{
    lock_take(&profiler_lock);
    *(int *)argument = runs ? 0 : EALREADY;
    if (runs)
        profile_totals.stopped_ms = clock_now_ms();
    runs = false;
    store_relaxed(&policy.profile_bytes, (size_t)0);
    lock_drop(&profiler_lock);
}

int profile_stop(void)
{
    int error = EDEADLK;
    if (!fork_holds_any_lock())
        door_visit(stop, &error);
    return error;
}

bool profile_runs(void)
{
    return load_relaxed(&policy.profile_bytes) != 0;
}
