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

struct blocks {
    struct shadow *held[BLOCKS]; /* never NULL */
    struct shadow own[BLOCKS];   /* where the shadows lie that the player starts with */
    uint64_t seed;               /* of the next pattern */
    bool may_fail;               /* memory may be refused */

    /* An operation of the fuzzer's own, on one of those held. */
    void (*more)(struct blocks *blocks, struct shadow **held, struct input *input);
};

/* Once a process, before the first player. */
void blocks_start(void);

void blocks_init(struct blocks *blocks, uint64_t seed);

/* Does what the input says, to its end. */
void blocks_play(struct blocks *blocks, struct input *input);

/* Frees all that the player holds, from the calling thread. */
void blocks_free_all(struct blocks *blocks);

/* Frees the block, if there is one. */
void blocks_free(struct shadow *shadow);

#endif
