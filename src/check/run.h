/*
 * Memory for checked blocks: runs of units, each of one block or of equal ones, with a record of each block apart from it.
 * Every unit of a run is tagged TAG_CHECKED, so that any address in it leads to its block.
 *
 * Runs belong to shards, each with a lock; a run's lock guards its free blocks and the state of each of its records.
 */
#ifndef HAK_CHECK_RUN_H
#define HAK_CHECK_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/shard.h"
#include "heap/keeper.h"

enum checked_state {
    CHECKED_UNUSED,
    CHECKED_LIVE,
    CHECKED_FREED, /* in quarantine, or about to be */
};

/* What the search for leaks thinks of a block. */
enum checked_reach { REACH_NONE, REACH_LEAKED, REACH_ROOTS };

/* Who did something to a block. */
struct checked_event {
    uint32_t stack; /* observe/depot.h */
    int thread;
};

/* The record of a block. */
struct checked {
    size_t size;          /* as it was requested, bytes */
    struct checked *next; /* among unused ones of the run, in quarantine, or in the search for leaks */
    struct checked_event allocated;
    struct checked_event freed;
    uint32_t offset;      /* from the start of the block's memory to the user's */
    uint32_t index;       /* in its run */
    uint16_t generation;  /* of processes, each forked from the one before: which has allocated it */
    uint8_t state;
    uint8_t family;       /* enum family */
    uint8_t reach;        /* enum checked_reach */
    bool has_zones;
    bool poisoned;
};

struct run {
    char *base;
    size_t units;
    size_t stride;          /* bytes of memory that each block has */
    uint32_t blocks;
    uint32_t taken;         /* of them, live or in quarantine */
    uint32_t reciprocal;    /* ceil(2^32 / stride); 0: there is one block */
    uint32_t shard;
    uint32_t class;         /* of its memory's size, a fixed one; SIZE_CLASSES: none */
    bool closed;            /* nothing may touch its pages */
    bool zero;              /* of one block that was never handed out: its memory reads as zero */
    struct checked *unused;
    struct list_node room;  /* among those of its class with unused blocks */
    struct list_node link;  /* among all of its shard */
    struct checked block[];
};

/* A block of memory for `bytes`, aligned to 16, its state still CHECKED_UNUSED. NULL: out of memory. */
struct checked *run_take(size_t bytes, struct run **run);

/* Gives it back. The lock of its run is held. */
void run_give_locked(struct checked *block);

/* The record of the block whose memory holds this address; NULL: it is nobody's. */
struct checked *run_find(const void *p);

/* The same, with the lock of its run (run_of, `shard`), which is not held before; NULL, without a lock, also if another thread gives the block
 * up just now. */
struct checked *run_find_locked(const void *p);

/* The record of a block as it was, for who reports: the block may be given up meanwhile, and the record become another's. */
union run_copy {
    struct run run;
    char bytes[sizeof(struct run) + sizeof(struct checked)]; /* of one block */
};

/* Of this block. The lock of its run is held. */
const struct checked *run_copy(const struct checked *block, union run_copy *to);

/* Of the block whose memory holds this address; NULL: it is nobody's, or is given up just now. Takes no lock. */
const struct checked *run_look(const void *p, union run_copy *to);

struct run *run_of(const struct checked *block);

static inline char *checked_memory(const struct checked *block)
{
    const struct run *run = run_of(block);
    return run->base + block->index * run->stride;
}

static inline char *checked_start(const struct checked *block)
{
    return checked_memory(block) + block->offset;
}

/* The lock of a shard's runs. */
void run_lock(unsigned shard);
void run_unlock(unsigned shard);

/* Calls look(run, argument) for each. All locks are held. */
void run_each_locked(void (*look)(struct run *run, void *argument), void *argument);

struct run_counts {
    size_t blocks;
    size_t bytes; /* as they were requested */
};

/* Counts live blocks, more or, by negative numbers, less. The shard's lock is held. */
void run_count_locked(unsigned shard, ptrdiff_t blocks, size_t bytes);

/* Of live blocks. Any thread; a moment old. */
struct run_counts run_counts(void);

/* The same, a shard's each, for who reads them from outside. */
struct run_live {
    size_t blocks;
    size_t bytes;
    uint64_t requests; /* since the start */
} ALIGNED(SHARD_ALIGN);

extern HIDDEN struct run_live run_live[SHARDS];

/* Of this process. */
uint16_t run_generation(void);

/* For fork, and for calls from signal handlers. */
void run_lock_all(void);
void run_unlock_all(void);
bool run_lock_is_mine(void);

#endif
