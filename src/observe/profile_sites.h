/*
 * What the profiler counts: samples by site, that is, by stack and size. Sizes of one site are so near each other that their
 * mean tells how many requests a sample stands for.
 *
 * The profiler's lock is held.
 */
#ifndef HAK_OBSERVE_PROFILE_SITES_H
#define HAK_OBSERVE_PROFILE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { LIFETIMES = 8 }; /* of freed samples: less than 1 ms, 10 ms, and so on up to 1000 s; longer */

struct profile_sum {
    uint64_t count; /* of samples */
    uint64_t bytes; /* requested by them */
};

struct site {
    struct site *next;        /* in its bucket */
    uint32_t stack;           /* observe/depot.h */
    uint32_t sizes;           /* which sizes it is of */
    struct profile_sum live;
    struct profile_sum allocated;
    struct profile_sum peak;  /* live when all that is live was at its most; */
    uint64_t peak_number;     /* but if there was a higher peak since, with another number, as now */
    uint64_t lifetimes[LIFETIMES]; /* of those that were samples to their end */
};

/* A sampled block that is live. One that realloc makes smaller is still the request of its largest size. */
struct sample {
    struct site *site;        /* where it is live, */
    struct site *origin;      /* and where it counts as allocated, and its lifetime when it is freed */
    struct sample *next;      /* among free records */
    size_t size;              /* requested, bytes; */
    size_t most;              /* and the most so far */
    uint64_t weight;          /* bytes that it stands for */
    uint64_t born_ms;
    uint32_t profile;         /* in which it was taken */
};

struct profile_totals {
    size_t rate;
    uint32_t profile;         /* its number: each start begins another */
    uint64_t started_ms;
    uint64_t stopped_ms;      /* 0: it goes on */
    struct profile_sum live;
    struct profile_sum allocated;
    uint64_t live_weight;     /* bytes that live samples stand for, */
    uint64_t peak_weight;     /* and the most there were */
    uint64_t peak_number;     /* of peaks so far */
    uint64_t requests;        /* that all samples stand for */
    uint64_t dropped;         /* samples for which there was no memory */
    uint32_t sites;
};

extern HIDDEN struct profile_totals profile_totals;

/* Forgets all sites, and begins a profile with this rate. Samples from before may still be freed. False: no memory. */
bool sites_begin(size_t rate, uint64_t now_ms);

/* NULL: no memory. */
struct sample *sites_add(uint32_t stack, size_t size, uint64_t now_ms);
/* NULL: it has become smaller, and is no sample any more, as it would not have been had it been requested so. */
struct sample *sites_resize(struct sample *sample, size_t size);
void sites_remove(struct sample *sample, uint64_t now_ms);

/* Copies site number i of profile_totals.sites as it is, its peak up to date. */
void sites_copy(uint32_t i, struct site *site);

#endif
