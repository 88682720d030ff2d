/* What one thread has: its blocks, its random numbers and how much it may do. */
#ifndef HAK_SOAK_HAND_H
#define HAK_SOAK_HAND_H

#include "ledger.h"

struct hand {
    struct ledger ledger;
    uint64_t random;
    size_t share;       /* bytes of small blocks that are this thread's at a peak */
    size_t large_share; /* the same of large ones */
    size_t work;        /* operations in a phase */
    size_t made;        /* blocks so far */
    size_t thread;
    size_t round;
    size_t hard_bytes;  /* the round's hard limit, or 0 */
    unsigned idle_most_ms;
    bool alone; /* in a fork's child: no pool, whose lock another thread may have held */
};

/* A size as programs ask for: most are small, few are above 32 KiB, now and then 0. */
size_t hand_size(struct hand *hand);

/* These stop at a full ledger and, with false, when memory is short. */
bool hand_make(struct hand *hand, enum block_source source, size_t size, size_t alignment);
bool hand_make_any(struct hand *hand);

void hand_free(struct hand *hand, size_t index);
void hand_free_all(struct hand *hand);

/* Gives one to the pool, or frees it. */
void hand_leave(struct hand *hand, size_t index);

/* Takes up to `count` from the pool and frees them. */
void hand_free_others(struct hand *hand, size_t count);

/* A steady state: makes, frees, resizes, hands over. */
void hand_churn(struct hand *hand, size_t operations);

#endif
