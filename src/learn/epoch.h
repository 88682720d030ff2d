/*
 * One epoch: what the program asked for, and what the allocator's slow paths cost meanwhile, in nanoseconds. All of it is
 * counts times prices (signals.c), but for memory, which is bytes times time: so the same program costs the same however loaded
 * the machine is. Epochs can be added up.
 */
#ifndef HAK_LEARN_EPOCH_H
#define HAK_LEARN_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "config/size_class.h"

enum cost_part {
    COST_REFILLS, /* refills and flushes of magazines */
    COST_REMOTE,  /* blocks that other threads freed */
    COST_LARGE,   /* large blocks, and runs of units */
    COST_CALLS,   /* of the kernel */
    COST_FAULTS,  /* page faults */
    COST_WAITS,   /* for locks */
    COST_CACHED,  /* memory held: free blocks in magazines */
    COST_KEPT,    /* free large blocks */
    COST_DIRTY,   /* free units that have their pages */
    COST_PARTS,
};

struct epoch {
    uint64_t end_ms; /* since the process's start */
    uint64_t ms;
    uint64_t work_ns;  /* the process's own time on processors; 0: not known */
    uint64_t requested; /* bytes */
    uint64_t settled;   /* bytes requested before it under the same policy, while that came into effect */
    uint64_t ns[COST_PARTS];
    uint64_t held_ms[COST_PARTS]; /* byte-milliseconds behind the parts that are memory */
    uint64_t kept_most;           /* bytes of free large blocks, at the highest */
    uint64_t purged;              /* bytes given back to the kernel */
    uint32_t refills[SIZE_CLASSES];
    uint32_t large[SIZE_BINS];    /* requests */
    uint32_t heaps;               /* that had a heartbeat in it */
    bool changed;                 /* the program became another in the middle */
};

/* Sums, and the higher of what is highest; `to->changed` stays. */
void epoch_add(struct epoch *to, const struct epoch *more);

/* Halves what has been added up, so that later epochs count more. */
void epoch_fade(struct epoch *epoch);

uint64_t epoch_ns(const struct epoch *epoch);

/* ns for each MiB requested. */
double epoch_cost(const struct epoch *epoch);

/* Of the program's own time, the part that is worth no trouble. */
#define COST_LEAST_PART 0.001

/* The cost for comparisons: with that part added, what is less makes no difference. In all, and for each MiB requested. */
uint64_t epoch_compared_ns(const struct epoch *epoch);
double epoch_compared_cost(const struct epoch *epoch);

/* An epoch in which the process mostly stood still (idle, stopped) says little of what its memory costs while it works: one that is to have
 * cost more than the process worked costs as much as that. */
struct epoch epoch_as_worked(const struct epoch *epoch);

/* Average bytes held over the epoch, of a part that is memory. */
uint64_t epoch_held(const struct epoch *epoch, enum cost_part part);

/*
 * What the program asks of the door, by sizes: shares of requests, in 1/65536. A policy moves it a little, another phase of the
 * program a lot.
 */
enum { MIX_SIZES = 16 };

struct mix {
    uint32_t share[MIX_SIZES];
    uint32_t visits;
};

struct mix mix_of(const uint32_t refills[SIZE_CLASSES], const uint32_t large[SIZE_BINS]);

/* Is it another phase? Of few visits nothing can be said. */
bool mix_differs(const struct mix *a, const struct mix *b);

#endif
