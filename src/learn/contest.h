/* Whom the champion plays next, and what a match says: the learner's part in which it looks at no state. */
#ifndef HAK_LEARN_CONTEST_H
#define HAK_LEARN_CONTEST_H

#include "learn/learner.h"

/* A challenger for the champion: a known arm, or a new one. False: nothing promises anything. */
bool contest_find(struct learner *learner);

/* The mode's values are the challenger. */
void contest_audit(struct learner *learner);

enum verdict {
    VERDICT_OPEN,   /* another match */
    VERDICT_BETTER, /* the challenger costs less, beyond doubt and by enough to matter */
    VERDICT_EQUAL,  /* it does not cost less by so much */
    VERDICT_WORSE,  /* it costs more, beyond doubt */
    VERDICT_VOID,   /* the program has changed meanwhile */
};

/* Of the match that is over: updates ratings, noise, and what the challenger has won so far. */
enum verdict contest_judge(struct learner *learner);

/* The first epoch of each side has been played, and the challenger's was so much dearer that the others are spared: it has
 * lost. */
bool contest_is_lost(struct learner *learner);

/* As soon as the epoch now has cost more, in ns, and requested anything, it need not go on: it is the challenger's, and it has lost.
 * UINT64_MAX where the champion's last epoch was not made to last as long. */
uint64_t contest_ns_most(const struct learner *learner);

/* What the challenger gains against the champion, by all their matches; believed the less, the more of it may be noise. */
double contest_gain(const struct learner *learner);

/* Deviation of an epoch's cost, as a share. */
double contest_noise(const struct learner *learner);

/* The program has changed: what was judged is open again, and ratings are less sure. */
void contest_reopen(struct learner *learner);

/* Arms at the start: the mode's, and what is in force. */
void contest_begin(struct learner *learner);

#endif
