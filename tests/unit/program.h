/*
 * Simulated programs for the tests of the learner: what an epoch of a phase costs as a function of the policy, with seeded
 * noise. The best fixed policy of a phase is found by trying everything, without noise.
 */
#ifndef HAK_TEST_PROGRAM_H
#define HAK_TEST_PROGRAM_H

#include "learn/arms.h"
#include "learn/learner.h"

/* What a program does in one phase. Zero: it does not. */
struct phase {
    double refills[2];     /* for each MiB requested, of classes 24 and 30, with magazines of 64 KiB */
    double threads;
    double large;          /* requests of 1 MiB for each MiB requested */
    double working_set;    /* MiB of them in turn: so much must be kept to serve them */
    double interval_ms;    /* until a freed one is wanted again */
    double valley;         /* MiB of small blocks that are freed, and wanted again */
    double valley_ms;      /* after so long, once in twice as long */
    double base;           /* ns for each MiB that no policy changes */
};

/* What it costs, ns for each MiB, with an arm's values. */
double program_cost(const struct phase *phase, const struct arm *arm);

/* The arm that costs least. */
void program_best(const struct phase *phase, struct arm *best);

/* An epoch of so many ms, of a program that works all the time; `noise`: deviation of the cost, as a share. */
struct epoch program_epoch(const struct phase *phase, const struct arm *arm, uint64_t ms, double noise, uint64_t *random);

/* A run of a learner. */
struct run {
    struct learner learner;
    uint64_t random;
    uint64_t now_ms;
    double noise;
    double cost;      /* ns, of the last run_for */
    double mode_cost; /* what the mode's values would have cost, */
    double best_cost; /* and the best fixed policy */
    double worked_ns;
};

void run_begin(struct run *run, uint64_t seed, double noise);

/* So many ms of the phase, from the run's place on. */
void run_for(struct run *run, const struct phase *phase, uint64_t ms);

/* One epoch of it. */
void run_epoch(struct run *run, const struct phase *phase, const struct arm *best);

#endif
