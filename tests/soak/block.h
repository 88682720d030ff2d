/*
 * The model's record of one live block, and what may happen to the block: each operation checks what the allocator did, and
 * ends the process if that was wrong. Records live in memory that the allocator under test has no part in.
 */
#ifndef HAK_SOAK_BLOCK_H
#define HAK_SOAK_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
    unsigned char *at;
    size_t size;
    size_t alignment;
    uint64_t seed; /* of the content */
};

enum block_source { BLOCK_MALLOC, BLOCK_CALLOC, BLOCK_REALLOC, BLOCK_ALIGNED };

/* While requests may fail with ENOMEM (a hard limit is set), NULL is no failure of the run. */
void block_may_fail(bool may);
bool block_failure_allowed(void);

/* How many requests have failed since this was asked last. */
size_t block_refusals(void);

/* A block from one of the family's functions, filled. `alignment` is for BLOCK_ALIGNED only. False: memory is short. */
bool block_make(struct block *block, enum block_source source, size_t size, size_t alignment, uint64_t *random);

/* Is everything as it was left? */
void block_check(const struct block *block);

/* By realloc, size > 0. False: memory is short, and the block is as it was. */
bool block_resize(struct block *block, size_t size, uint64_t *random);

/* Checks the block and frees it. */
void block_free(struct block *block);

#endif
