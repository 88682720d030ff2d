/* Mode research: a line of report for each epoch, from which the lab draws costs and ratings over time; and before the first of each
 * policy that competes, a line for each value in which it is not the champion's. */
#ifndef HAK_LEARN_EPOCH_LOG_H
#define HAK_LEARN_EPOCH_LOG_H

#include "learn/learner.h"

/* An epoch that is over, before the learner is told of it: what it says is in force was. */
void epoch_log(const struct learner *learner, const struct epoch *epoch);

#endif
