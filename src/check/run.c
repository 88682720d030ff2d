#include "check/run.h"

#include <unistd.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/shard.h"
#include "os/os.h"
#include "span/span.h"

/* Blocks of more memory than this have a run each. */
#define SHARED_MOST (16 * KIB)

static struct shard {
    struct lock lock;
    struct list runs;
} ALIGNED(SHARD_ALIGN) shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = LOCK_INITIALIZER(LOCK_CHECK)}};

struct run_live run_live[SHARDS];

static struct list with_unused[SHARDS][SIZE_CLASSES]; /* runs with unused blocks */
static struct list without_units[SHARDS][SIZE_CLASSES]; /* records of runs that have given them back */

static uint16_t generation; /* guarded by all locks together */

static struct list *room_of(const struct shard *shard, uint32_t class)
{
    return &with_unused[shard - shards][class];
}

static struct list *bare_of(const struct shard *shard, uint32_t class)
{
    return &without_units[shard - shards][class];
}

struct run *run_of(const struct checked *block)
{
    const struct checked *first = block - block->index;
    return (struct run *)((char *)(uintptr_t)first - offsetof(struct run, block));
}

void run_lock(unsigned shard)
{
    lock_take(&shards[shard].lock);
}

void run_unlock(unsigned shard)
{
    lock_drop(&shards[shard].lock);
}

static size_t record_bytes(size_t blocks)
{
    return sizeof(struct run) + blocks * sizeof(struct checked);
}

/* A record without units; its blocks are all unused. */
static struct run *make_record(uint32_t shard, uint32_t class, size_t blocks, size_t units, size_t stride)
{
    struct run *run = meta_alloc(record_bytes(blocks));
    if (run == NULL)
        return NULL;
    run->units = units;
    run->stride = stride;
    run->blocks = (uint32_t)blocks;
    run->shard = shard;
    run->class = class;
    for (size_t i = blocks; i-- > 0;) {
        run->block[i].index = (uint32_t)i;
        run->block[i].next = run->unused;
        run->unused = &run->block[i];
    }
    return run;
}

static void drop_record(struct shard *shard, struct run *run)
{
    if (run->class < SIZE_CLASSES)
        list_push_front(bare_of(shard, run->class), &run->link);
    else
        meta_free(run, record_bytes(run->blocks));
}

/* What its blocks were is not what those of other memory were. */
static void forget_events(struct run *run)
{
    for (size_t i = 0; i < run->blocks; i++)
        run->block[i].allocated = run->block[i].freed = (struct checked_event){0};
}

static struct run *take_record(struct shard *shard, uint32_t class)
{
    struct list_node *bare = bare_of(shard, class)->first;
    if (bare != NULL) {
        list_remove(bare_of(shard, class), bare);
        struct run *run = LIST_ENTRY(bare, struct run, link);
        forget_events(run);
        return run;
    }
    const struct size_class *c = &size_classes[class];
    struct run *run = make_record((uint32_t)(shard - shards), class, c->blocks, c->units, c->size);
    if (run != NULL)
        run->reciprocal = c->reciprocal;
    return run;
}

static bool add_units(struct shard *shard, struct run *run)
{
    run->base = span_take(run->units, 1, &run->zero);
    if (run->base == NULL) {
        drop_record(shard, run);
        return false;
    }
    arena_assign(run->base, run->units, TAG_CHECKED, run);
    list_push_front(&shard->runs, &run->link);
    return true;
}

static struct run *with_room(struct shard *shard, uint32_t class)
{
    struct list_node *node = room_of(shard, class)->first;
    if (node != NULL)
        return LIST_ENTRY(node, struct run, room);
    struct run *run = take_record(shard, class);
    if (run == NULL || !add_units(shard, run))
        return NULL;
    list_push_front(room_of(shard, class), &run->room);
    return run;
}

static struct run *of_one_block(struct shard *shard, size_t bytes)
{
    size_t units = align_up(divide_up(bytes, UNIT_SIZE), units_per_page());
    if (!span_may_promise(units))
        return NULL;
    struct run *run = make_record((uint32_t)(shard - shards), SIZE_CLASSES, 1, units, units << UNIT_SHIFT);
    return run != NULL && add_units(shard, run) ? run : NULL;
}

struct checked *run_take(size_t bytes, struct run **found)
{
    struct shard *shard = &shards[shard_of_thread()];
    struct checked *block = NULL;
    lock_take(&shard->lock);
    struct run *run = bytes <= SHARED_MOST ? with_room(shard, size_class_fixed(bytes)) : of_one_block(shard, bytes);
    if (run != NULL) {
        block = run->unused;
        run->unused = block->next;
        run->zero &= run->class == SIZE_CLASSES;
        run->taken++;
        if (run->unused == NULL && run->class < SIZE_CLASSES)
            list_remove(room_of(shard, run->class), &run->room);
    }
    lock_drop(&shard->lock);
    *found = run;
    return block;
}

/* A record that waits for other units does not say which it had: the search for leaks reads it like any memory, and these may be in a
 * block that has leaked. */
static void give_units(struct shard *shard, struct run *run)
{
    char *base = run->base;
    list_remove(&shard->runs, &run->link);
    arena_assign(base, run->units, TAG_NONE, NULL);
    if (run->closed && !os_commit(base, run->units << UNIT_SHIFT))
        span_abandon(run->units);
    else
        span_give(base, run->units, !run->closed);
    run->closed = false;
    store_relaxed(&run->base, (char *)NULL);
    drop_record(shard, run);
}

/* One empty run of a class waits for the next blocks. */
void run_give_locked(struct checked *block)
{
    struct run *run = run_of(block);
    struct shard *shard = &shards[run->shard];
    bool shared = run->class < SIZE_CLASSES;
    struct list *room = shared ? room_of(shard, run->class) : NULL;
    if (shared && run->unused == NULL)
        list_push_back(room, &run->room);
    block->state = CHECKED_UNUSED;
    block->next = run->unused;
    run->unused = block;
    run->taken--;
    if (run->taken > 0 || (shared && room->first == room->last))
        return;
    if (shared)
        list_remove(room, &run->room);
    give_units(shard, run);
}

static struct run *run_at(const void *p)
{
    const char *word = (const char *)align_down((uintptr_t)p, 8);
    return arena_tag(word) == TAG_CHECKED ? arena_span(word) : NULL;
}

/* `run`: NULL, where another thread gives its units up just now. */
static struct checked *block_in(struct run *run, const void *p)
{
    if (run == NULL)
        return NULL;
    size_t offset = (uintptr_t)p - (uintptr_t)load_relaxed(&run->base);
    size_t index = run->reciprocal == 0 ? 0 : (size_t)(offset * run->reciprocal >> 32);
    return index < run->blocks ? &run->block[index] : NULL;
}

struct checked *run_find(const void *p)
{
    return block_in(run_at(p), p);
}

struct checked *run_find_locked(const void *p)
{
    struct checked *block = run_find(p);
    if (block == NULL)
        return NULL;
    /* Of two frees of one block the other may have been first by now, and its record another's, or nobody's. */
    uint32_t shard = load_relaxed(&run_of(block)->shard);
    if (shard >= SHARDS)
        return NULL;
    run_lock(shard);
    if (run_find(p) == block)
        return block;
    run_unlock(shard);
    return NULL;
}

static const struct checked *copy_of(const struct run *run, const struct checked *block, union run_copy *to)
{
    size_t index = (size_t)(block - run->block);
    to->run = (struct run){.base = run->base + index * run->stride, .units = run->units, .stride = run->stride, .blocks = 1};
    to->run.block[0] = *block;
    to->run.block[0].index = 0;
    return to->run.block;
}

const struct checked *run_copy(const struct checked *block, union run_copy *to)
{
    return copy_of(run_of(block), block, to);
}

/* A run's units are given up before its record is. */
const struct checked *run_look(const void *p, union run_copy *to)
{
    struct run *run = run_at(p);
    const struct checked *block = block_in(run, p);
    if (block == NULL)
        return NULL;
    block = copy_of(run, block, to);
    load_fence();
    return run_at(p) == run ? block : NULL;
}

void run_each_locked(void (*look)(struct run *run, void *argument), void *argument)
{
    for (unsigned i = 0; i < SHARDS; i++)
        for (struct list_node *node = shards[i].runs.first; node != NULL; node = node->next)
            look(LIST_ENTRY(node, struct run, link), argument);
}

void run_count_locked(unsigned shard, ptrdiff_t blocks, size_t bytes)
{
    struct run_live *live = &run_live[shard];
    store_relaxed(&live->blocks, live->blocks + (size_t)blocks);
    store_relaxed(&live->bytes, live->bytes + bytes);
    store_relaxed(&live->requests, live->requests + (blocks > 0));
}

struct run_counts run_counts(void)
{
    struct run_counts sum = {0};
    for (unsigned i = 0; i < SHARDS; i++) {
        sum.blocks += load_relaxed(&run_live[i].blocks);
        sum.bytes += load_relaxed(&run_live[i].bytes);
    }
    return sum;
}

void run_lock_all(void)
{
    shards_lock(shards, sizeof shards[0], SHARDS);
}

/* Where a fork's child comes by, too. */
static void note_process(void)
{
    static int process;
    int now = (int)getpid();
    if (process != 0 && process != now)
        generation++;
    process = now;
}

uint16_t run_generation(void)
{
    return generation;
}

void run_unlock_all(void)
{
    note_process();
    shards_unlock(shards, sizeof shards[0], SHARDS);
}

bool run_lock_is_mine(void)
{
    return shards_lock_is_mine(shards, sizeof shards[0], SHARDS);
}
