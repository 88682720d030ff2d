/*
 * One match of two policies: four epochs, of A and B in turn (A B A B, or B A B A), all of the same phase of the program.
 *
 * Each inner epoch is compared with the mean of its two neighbours, which are the other policy's:
 *     e1 = B1 - (A1 + A2) / 2        e2 = (B1 + B2) / 2 - A2
 * Their mean is the result. A cost that rises or falls steadily over the match, as that of a program that grows, drops out of
 * it. Half of what sets them apart is noise: it tells how far to believe the result, and has the variance of a single epoch.
 */
#ifndef HAK_LEARN_MATCH_H
#define HAK_LEARN_MATCH_H

#include <stdbool.h>

#include "learn/epoch.h"

enum { MATCH_EPOCHS = 4 };

enum match_side { SIDE_A, SIDE_B };

enum match_progress {
    MATCH_GOES_ON,
    MATCH_OVER,
    MATCH_VOID, /* the program has changed meanwhile: nothing can be said */
};

struct match {
    bool b_first;
    unsigned played;
    unsigned thrown_away; /* epochs in a row in which the program changed, or was stopped */
    bool first_may_be_pause;
    uint64_t shortest_ms;
    double cost[MATCH_EPOCHS];
    struct mix mix[MATCH_EPOCHS];
};

void match_begin(struct match *match, bool b_first);

/* Whose turn it is. */
enum match_side match_turn(const struct match *match);

/* The epoch of whose turn it was. One in which the program changed is thrown away, and the same side's turn again; so is one in
 * which it was stopped, and held its memory the longer. That the first was one shows in the second: then both are. */
enum match_progress match_add(struct match *match, const struct epoch *epoch);

/* Of a match that is over. */
struct match_result {
    double gain;   /* by how much B costs less than A, as a share of the mean of both: of A's alone it would be biased */
    double noise;  /* of one epoch, as such a share */
    double a_cost; /* ns for each MiB */
    double b_cost;
};

struct match_result match_result(const struct match *match);

/* The same as a share of A's cost. */
double match_share(double gain);

/* A result's variance is that of one epoch's noise times this. */
#define MATCH_VARIANCE 1.25

#endif
