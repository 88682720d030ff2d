/*
 * A program on the hak_ names that an input describes: blocks of all kinds, each with a shadow (model/shadow.h) that says where
 * it is and what fills it. One player is one thread of it.
 */
#ifndef HAK_TEST_BLOCKS_H
#define HAK_TEST_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz.h"
#include "model/shadow.h"

enum { BLOCKS = 48 };

struct blocks;

/* Something done to one of the blocks held. */
typedef void blocks_operation(struct blocks *blocks, struct shadow **held, struct input *input);

struct blocks {
    struct shadow *held[BLOCKS]; /* never NULL */
    struct shadow own[BLOCKS];   /* where the shadows lie that the player starts with */
    uint64_t seed;               /* of the next pattern */
    bool may_fail;               /* memory may be refused */

    blocks_operation *more; /* the fuzzer's own, or NULL */
};

/* Once a process, before the first player. */
void blocks_start(void);

void blocks_init(struct blocks *blocks, uint64_t seed);

/* Does what the input says, to its end. */
void blocks_play(struct blocks *blocks, struct input *input);

/* Frees all that the player holds, from the calling thread. */
void blocks_free_all(struct blocks *blocks);

/* A program of one thread: all of the above, from first to last. */
void blocks_play_alone(const uint8_t *data, size_t size, blocks_operation *more);

/* Frees the block, if there is one. */
void blocks_free(struct shadow *shadow);

#endif
