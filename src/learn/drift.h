/*
 * Is the program still the one that was learned from? The first epochs are the reference, by their median; later ones are
 * compared with it, by a cumulative sum of what they cost more, or less (E. S. Page, Biometrika 41, 1954), and by what they ask
 * for.
 */
#ifndef HAK_LEARN_DRIFT_H
#define HAK_LEARN_DRIFT_H

#include <stdbool.h>

#include "learn/epoch.h"

enum { REFERENCE_EPOCHS = 5 };

struct drift {
    unsigned epochs;
    double reference; /* ns for each MiB */
    double first[REFERENCE_EPOCHS]; /* the same, in order of size */
    double above;     /* cumulative sums, as shares of the reference */
    double below;
    unsigned others;  /* epochs in a row that asked for other sizes */
    uint32_t refills[SIZE_CLASSES];
    uint32_t large[SIZE_BINS];
};

/* The reference is to be made anew. */
void drift_begin(struct drift *drift);

/* The same reference, after epochs that were not seen. */
void drift_go_on(struct drift *drift);

/* `noise`: deviation of an epoch's cost, as a share. True: the program has changed. */
bool drift_add(struct drift *drift, const struct epoch *epoch, double noise);

#endif
