/*
 * Learning in this process: the one learner, driven by heartbeats. Each thread's heartbeat comes here, inside its door; of
 * several at once one is served, and the others go on. An epoch is at least 20 ms, and 8 heartbeats, unless it is a
 * trial's that has lost before; at its end the learner (learner.h) is told of it, and what it wants in force is set, knob
 * by knob.
 */
#ifndef HAK_LEARN_LEARN_H
#define HAK_LEARN_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct heap;

/* At the start of the process: times of decisions are since then. */
void learn_start(void);

void learn_beat(struct heap *heap);

/* In the child of a fork, where it begins anew, with the best that is known. */
void learn_forked(void);

/* Before what is learned is saved: puts the best that is known into force, in the place of what is on trial, and nothing else is tried
 * until learn_go_on. False: something else is in force, and is not to be saved: the mode was switched since the last heartbeat, or the
 * learner is at work. */
bool learn_show_best(void);
void learn_go_on(void);

/* All words, and all set. */
struct learn_summary {
    uint64_t runs;           /* 0: nothing is learned; what follows is of when something was. 1: it learns. 2: it observes */
    uint64_t state;          /* enum learner_state (learner.h) */
    uint64_t epochs;
    uint64_t learn_ms;       /* of the process; in a fork's child since then */
    uint64_t mode_cost;      /* ns for each MiB requested, with the mode's values: an estimate where they are not in force */
    uint64_t cost;           /* the same of what is best */
    int64_t saved_ppm;       /* since it began, all that was tried included */
    uint64_t arms;           /* policies that compete */
    int64_t best_rating;
    uint64_t best_deviation;
    uint64_t changes;        /* values in which the best one differs from the mode's */
    uint64_t matches;
    uint64_t drifts;         /* how often the program became another */
    uint64_t canaries;
    uint64_t rollbacks;
    uint64_t kills;
};

/* Any thread; as of the end of the last epoch. */
void learn_summary(struct learn_summary *summary);

/* Where it stands, for tools outside. The sequence is odd while the words are written. */
enum { LEARN_WORDS = sizeof(struct learn_summary) / sizeof(uint64_t) };

extern HIDDEN struct learn_shown {
    uint64_t sequence;
    uint64_t words[LEARN_WORDS];
} learn_shown;

#endif
