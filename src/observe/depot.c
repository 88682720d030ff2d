#include "observe/depot.h"

#include <stdbool.h>
#include <string.h>

#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"

/* A number is the place of a stack, counted in grains: 4096 chunks of 64 KiB, 256 MiB, some million stacks. */
enum {
    GRAIN_SHIFT = 3,
    CHUNK_SHIFT = 16,
    CHUNK_GRAINS_SHIFT = CHUNK_SHIFT - GRAIN_SHIFT,
    CHUNK_GRAINS = 1 << CHUNK_GRAINS_SHIFT,
    CHUNKS = 4096,
    BUCKETS = 1 << 16,
};

struct stack {
    uint32_t next; /* in its bucket */
    uint32_t hash;
    uint32_t count;
    uintptr_t calls[];
};

static void *chunks[CHUNKS];
static uint32_t *buckets; /* numbers of the stacks put in last */
static size_t memory; /* bytes */
static uint32_t used = 1; /* grains; the first is nobody's: 0 is no number */

static struct stack *stack_at(uint32_t number)
{
    char *chunk = load_acquire(&chunks[number >> CHUNK_GRAINS_SHIFT]);
    return (struct stack *)(void *)(chunk + ((size_t)(number & (CHUNK_GRAINS - 1)) << GRAIN_SHIFT));
}

/* Two threads that make the same lose one. */
static void *make_once(void **place, size_t bytes)
{
    void *there = load_acquire(place);
    if (there != NULL)
        return there;
    void *made = meta_alloc(bytes);
    add_relaxed(&memory, made != NULL ? bytes : 0);
    if (made != NULL && !__atomic_compare_exchange_n(place, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return there;
    return made;
}

/* Room for so many grains within one chunk. DEPOT_NONE: there is none. */
static uint32_t take_room(uint32_t grains)
{
    uint32_t at = load_relaxed(&used);
    uint32_t start;
    do {
        bool fits = (at & (CHUNK_GRAINS - 1)) + grains <= CHUNK_GRAINS;
        start = fits ? at : (uint32_t)align_up(at, CHUNK_GRAINS);
        if (start >= (uint32_t)CHUNKS << CHUNK_GRAINS_SHIFT)
            return DEPOT_NONE;
    } while (!__atomic_compare_exchange_n(&used, &at, start + grains, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return make_once(&chunks[start >> CHUNK_GRAINS_SHIFT], (size_t)1 << CHUNK_SHIFT) != NULL ? start : (uint32_t)DEPOT_NONE;
}

static uint32_t hash_of(const uintptr_t *calls, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ calls[i]) * 0x9e3779b97f4a7c15u + (hash >> 32);
    return (uint32_t)(hash >> 32);
}

static uint32_t find(uint32_t number, uint32_t hash, const uintptr_t *calls, size_t count)
{
    while (number != DEPOT_NONE) {
        const struct stack *stack = stack_at(number);
        if (stack->hash == hash && stack->count == count && memcmp(stack->calls, calls, count * sizeof *calls) == 0)
            break;
        number = stack->next;
    }
    return number;
}

uint32_t depot_find(const uintptr_t *calls, size_t count)
{
    uint32_t *table = load_acquire(&buckets);
    if (table == NULL || count == 0)
        return DEPOT_NONE;
    uint32_t hash = hash_of(calls, count);
    return find(load_acquire(&table[hash % BUCKETS]), hash, calls, count);
}

size_t depot_bytes(void)
{
    return load_relaxed(&memory);
}

/* Two threads that put in the same at once may both find a place for it. */
uint32_t depot_put(const uintptr_t *calls, size_t count)
{
    uint32_t *table = count > 0 ? make_once((void **)&buckets, BUCKETS * sizeof *buckets) : NULL;
    if (table == NULL)
        return DEPOT_NONE;
    uint32_t hash = hash_of(calls, count);
    uint32_t *bucket = &table[hash % BUCKETS];
    uint32_t first = load_acquire(bucket);
    uint32_t known = find(first, hash, calls, count);
    if (known != DEPOT_NONE)
        return known;
    uint32_t number = take_room((uint32_t)(divide_up(sizeof(struct stack) + count * sizeof *calls, 1 << GRAIN_SHIFT)));
    if (number == DEPOT_NONE)
        return DEPOT_NONE;
    struct stack *stack = stack_at(number);
    stack->hash = hash;
    stack->count = (uint32_t)count;
    memcpy(stack->calls, calls, count * sizeof *calls);
    do
        stack->next = first;
    while (!__atomic_compare_exchange_n(bucket, &first, number, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return number;
}

const uintptr_t *depot_get(uint32_t number, size_t *count)
{
    bool is_number = number != DEPOT_NONE && number < (uint32_t)CHUNKS << CHUNK_GRAINS_SHIFT;
    if (!is_number || load_acquire(&chunks[number >> CHUNK_GRAINS_SHIFT]) == NULL) {
        *count = 0;
        return NULL;
    }
    const struct stack *stack = stack_at(number);
    *count = stack->count;
    return stack->calls;
}
