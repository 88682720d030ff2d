/*
 * Arms: the policies that compete. Each is the mode's values with a few changes; arm 0 of a learner has none, and is what all
 * are measured against.
 */
#ifndef HAK_LEARN_ARMS_H
#define HAK_LEARN_ARMS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/knobs.h"
#include "config/size_class.h"
#include "learn/elo.h"

/* As many as there are values: what is in force can always be said. */
enum { CHANGES_MOST = 2 * SIZE_CLASSES + SIZE_BINS + KNOBS - 3 };

struct change {
    uint64_t value;
    uint32_t knob;  /* enum knob */
    uint32_t index;
};

struct arm {
    struct elo elo;
    double gains;      /* of its matches against the champion, in sum (match.h) */
    uint32_t matches;
    uint32_t made;     /* the how manieth arm; 0: none lives here */
    uint32_t proven;   /* the best for a phase of the program that is over: the how manieth; 0: of none */
    bool doubted;      /* one of them was not counted */
    bool judged;       /* it has lost, as the program is now */
    uint32_t count;
    struct change changes[CHANGES_MOST];
};

/* What the arm says. */
uint64_t arm_value(const struct arm *arm, enum knob knob, unsigned index);

/* Changes one value; the mode's own is no change. */
void arm_set(struct arm *arm, enum knob knob, unsigned index, uint64_t value);

bool arm_says_the_same(const struct arm *a, const struct arm *b);

/* The values that are in force, where they are not the mode's; those that somebody has pinned are left out. */
void arm_of_knobs(struct arm *arm);

/* `from` is in force; then `to` is. */
void arm_switch(const struct arm *from, const struct arm *to);

/* How long it takes until a change from the one to the other shows: the longest time for which either keeps something that the
 * other keeps for another time. */
uint64_t arm_delay_ms(const struct arm *a, const struct arm *b);

/* Calls `visit` for each value in which the two differ. */
void arm_each_difference(const struct arm *a, const struct arm *b,
                         void (*visit)(enum knob knob, unsigned index, uint64_t in_a, uint64_t in_b, void *data), void *data);

#endif
