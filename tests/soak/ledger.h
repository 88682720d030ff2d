/* A list of live blocks in memory from mmap, and the pool through which threads hand blocks to each other. */
#ifndef HAK_SOAK_LEDGER_H
#define HAK_SOAK_LEDGER_H

#include "block.h"

enum { LEDGER_MOST = 1 << 18, POOL_MOST = 1 << 14 };

struct ledger {
    struct block *blocks; /* room for LEDGER_MOST */
    size_t count;
    size_t bytes;
};

void ledger_init(struct ledger *ledger);

/* Gives the memory of the records back to the system; the list is empty, and may be used again. */
void ledger_drop(struct ledger *ledger);

/* There must be room. */
void ledger_put(struct ledger *ledger, const struct block *block);

/* Takes one out; the last takes its place. */
struct block ledger_take(struct ledger *ledger, size_t index);

/* Of one that stays where it is. */
bool ledger_resize(struct ledger *ledger, size_t index, size_t size, uint64_t *random);

void pool_init(void);

/* As ledger_drop. */
void pool_drop(void);

/* False: the pool is full. */
bool pool_give(const struct block *block);

/* One at random. False: the pool is empty. */
bool pool_take(struct block *block, uint64_t *random);

#endif
