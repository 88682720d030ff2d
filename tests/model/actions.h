/*
 * One thread of the model test: it holds a fixed number of shadows and, again and again, does something
 * random to one of them. Shadows wander between threads through the exchange.
 */
#ifndef HAK_TEST_ACTIONS_H
#define HAK_TEST_ACTIONS_H

#include "shadow.h"

#include <stddef.h>
#include <stdint.h>

enum { PLAYER_SHADOWS = 1500 };

struct player {
    struct shadow *held[PLAYER_SHADOWS]; /* never NULL; traded with the exchange one for one */
    struct shadow own[PLAYER_SHADOWS];   /* where the shadows lie that the player starts with */
    uint64_t random;
    size_t operations;
};

void player_init(struct player *player, uint64_t seed, size_t operations);

/* The thread function; the argument is the player. */
void *player_run(void *player);

/* Frees every block whose shadow the player holds, from the calling thread. */
void player_free_all(struct player *player);

/* Frees the blocks in the exchange, after all players are through. */
void exchange_free_all(void);

#endif
