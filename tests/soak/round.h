/* One round: threads that go through steps together, and what is left when they have ended. */
#ifndef HAK_SOAK_ROUND_H
#define HAK_SOAK_ROUND_H

#include "options.h"

struct round {
    size_t number; /* from 1 on */
    size_t threads;
    size_t blocks;      /* made */
    size_t peak_bytes;  /* resident, as seen every few ms */
    size_t after_bytes; /* resident when all but a few blocks are free and the caches are purged */
    size_t soft_bytes;  /* limits that were set, or 0 */
    size_t hard_bytes;
    size_t refused; /* requests, at the hard limit */
};

void rounds_begin(const struct options *options);

/* What it does depends on the seed, the number and the options; after `deadline_ms` it only ends what it has begun. */
struct round round_run(size_t number, uint64_t deadline_ms);

/* Frees what the rounds have kept. */
void rounds_end(void);

#endif
