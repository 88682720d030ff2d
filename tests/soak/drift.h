/* Does what is left after each round grow slowly, over the hours? */
#ifndef HAK_SOAK_DRIFT_H
#define HAK_SOAK_DRIFT_H

#include <stdbool.h>
#include <stddef.h>

/* Of each round, in their order: resident bytes when all but a few blocks are free and the caches are purged. */
void drift_note(size_t bytes);

/* Medians of the first and the last third of all. False: there were too few rounds to say. */
struct drift {
    size_t first;
    size_t last;
};

bool drift_between(struct drift *drift);

#endif
