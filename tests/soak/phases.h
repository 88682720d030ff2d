/* What a thread may do for a while. */
#ifndef HAK_SOAK_PHASES_H
#define HAK_SOAK_PHASES_H

#include "hand.h"

struct phase {
    const char *name;
    void (*run)(struct hand *hand);
};

/* Each round begins with this one: up to the thread's share. */
extern const struct phase phase_grow;
/* The thread sleeps. */
extern const struct phase phase_idle;

/* One of all, these two among them. Without forks: sanitizers do not survive them in the middle of so much. */
const struct phase *phase_any(uint64_t *random, bool forks);

#endif
