/*
 * Which sizes deserve a class of their own. Pure functions of what is known.
 *
 * A class saves what each of its blocks is smaller than one of the next class, slabs' ends included. It costs a slab in each
 * heap that uses it, because the last one is never full.
 */
#ifndef HAK_LEARN_FIT_CHOICE_H
#define HAK_LEARN_FIT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Requests that one class serves. */
struct fit_range {
    size_t above;         /* they are of more bytes than that, the size of the next smaller class, */
    size_t size;          /* and of as many as its blocks, at most */
    uint64_t out;         /* blocks of its slabs that are live or in magazines */
    uint32_t heaps;       /* that have slabs of it */
    const uint32_t *seen; /* blocks of requests by steps of 16 bytes, from 0 */
    uint32_t refills;     /* behind that */
};

/* A class of this size, for some of a range. */
struct fit_offer {
    size_t size;          /* 0: there is nothing to offer */
    uint64_t saves;       /* bytes */
    uint64_t costs;       /* bytes, of a slab in each heap */
};

/* Cuts off the lower part of a range, up to `size`, as if that had a class: the range is what is left. */
struct fit_range fit_cut(struct fit_range *range, size_t size);

/* Bytes that a range loses to sizes that are smaller than its blocks; 0 where a class is not to be opened: where next to nothing
 * is known, or lost of the `held` bytes of all slabs. */
uint64_t fit_waste(const struct fit_range *range, uint64_t held);

/* The ranges that lose most, the worst first. */
enum { FIT_WORST = 4 };

struct fit_worst {
    struct fit_range range[FIT_WORST];
    uint64_t waste[FIT_WORST]; /* 0: no more */
};

/* Adds a range, if it is among them. */
void fit_rank(struct fit_worst *worst, const struct fit_range *range, uint64_t held);

/* The size that saves most, its costs subtracted; of those that save no more than they cost, none. */
struct fit_offer fit_best(const struct fit_range *range);

/* Is it worth opening, when a class of that size was closed so often before because it was not? */
bool fit_is_worth(const struct fit_offer *offer, uint64_t held, unsigned failures);

/* A class that is open, its requests otherwise being of the class of `next` bytes. Has it become too little? */
struct fit_offer fit_of_class(const struct fit_range *range, size_t next);
bool fit_is_vain(const struct fit_offer *offer);

#endif
