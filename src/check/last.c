#include "check/last.h"

#include <stdint.h>

#include "base/atomic.h"
#include "base/fail.h"
#include "base/shard.h"

enum { KEPT = 64, WRITTEN_MOST = 16 };

/* The address with each bit inverted: as it is, it would keep a leaked block from being found. */
struct operation {
    uintptr_t not_p;
    size_t size;
    int thread;
    bool freed;
};

/* Of the threads of a shard, which may now and then write over each other's. */
static struct ring {
    uint32_t next;
    struct operation operation[KEPT];
} ALIGNED(SHARD_ALIGN) rings[SHARDS];

void last_note(bool freed, int thread, const void *p, size_t size)
{
    struct ring *ring = &rings[shard_of_thread()];
    struct operation *operation = &ring->operation[add_relaxed(&ring->next, 1u) % KEPT];
    store_relaxed(&operation->not_p, ~(uintptr_t)p);
    store_relaxed(&operation->size, size);
    store_relaxed(&operation->thread, thread);
    store_relaxed(&operation->freed, freed);
}

void last_write(int thread)
{
    const struct ring *ring = &rings[shard_of_thread()];
    uint32_t end = load_relaxed(&ring->next);
    unsigned written = 0;
    for (uint32_t back = 1; back <= KEPT && back <= end && written < WRITTEN_MOST; back++) {
        const struct operation *operation = &ring->operation[(end - back) % KEPT];
        if (load_relaxed(&operation->thread) != thread)
            continue;
        if (written++ == 0)
            note("hakmem: crash: what this thread has allocated and freed last, the last first:");
        note("    %s %p, %zu bytes", load_relaxed(&operation->freed) ? "freed" : "allocated",
             (void *)~load_relaxed(&operation->not_p), load_relaxed(&operation->size));
    }
}
