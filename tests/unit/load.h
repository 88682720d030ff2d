/*
 * A load of blocks of all kinds with a seeded pattern in each, for tests that take something away from the
 * process meanwhile: what is refused is told by NULL and ENOMEM, what is live keeps its content. Any thread, but
 * one at a time for a load.
 */
#ifndef HAK_TEST_LOAD_H
#define HAK_TEST_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOAD_BLOCKS = 20000, LOAD_THREADS = 4 };

struct load_block {
    unsigned char *at; /* NULL: no block */
    size_t bytes;
    uint64_t seed;
};

struct load {
    struct load_block blocks[LOAD_BLOCKS];
    uint64_t random;
    size_t live_bytes;
    size_t refused; /* requests that gave NULL; errno was ENOMEM */
};

/* Random operations of the whole family, each block verified before it is resized or freed; stays below `most`
 * live bytes. Requests may be refused. */
void load_run(struct load *load, size_t operations, size_t most);

/* Allocates blocks of `bytes` until one is refused, at most `most` bytes in all. True if one was. */
bool load_fill(struct load *load, size_t bytes, size_t most);

/* Verifies every live block. */
void load_check(const struct load *load);

/* Verifies and frees every block. */
void load_drain(struct load *load);

/* Runs `play` with each load on a thread of its own, the first on the caller's, which leads; drains the loads, and
 * returns when the other threads have ended. Once a process. */
void load_play(struct load loads[LOAD_THREADS], void (*play)(struct load *load, bool leads));

/* Within `play`: waits until all its threads are here. */
void load_meet(void);

#endif
