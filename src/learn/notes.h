/* What the learner writes down of itself: decisions (decisions.h), each with the time, and whether it was carried out. */
#ifndef HAK_LEARN_NOTES_H
#define HAK_LEARN_NOTES_H

#include "learn/learner.h"

/* It goes over to another state. */
void note_state(const struct learner *learner, enum learner_state state);

/* Arm `to` comes after arm `from`: each value in which they differ. `gain`: of the one against the other (match.h). */
void note_change(const struct learner *learner, unsigned from, unsigned to, uint64_t evidence, double gain);

/* In observe mode: what a change of one value is estimated to save. */
void note_estimate(const struct learner *learner, const struct prospect *prospect);

void note_kill(const struct learner *learner, bool is_restless);

#endif
