#include "learn/drift.h"

enum { OTHERS_MOST = 2 };

/* A deviation within this, or within the noise, is none; one epoch counts for at most so much; and so much is a change. At
 * least three epochs agree then. */
#define SLACK_LEAST 0.08
#define EPOCH_MOST 0.15
#define ALARM 0.4

void drift_begin(struct drift *drift)
{
    *drift = (struct drift){.epochs = 0};
}

void drift_go_on(struct drift *drift)
{
    drift->epochs = drift->epochs < REFERENCE_EPOCHS ? drift->epochs : REFERENCE_EPOCHS;
    drift->above = drift->below = 0;
    drift->others = 0;
}

static void add_to_reference(struct drift *drift, const struct epoch *epoch)
{
    double cost = epoch_compared_cost(epoch);
    unsigned place = drift->epochs++;
    for (; place > 0 && drift->first[place - 1] > cost; place--)
        drift->first[place] = drift->first[place - 1];
    drift->first[place] = cost;
    drift->reference = drift->first[drift->epochs / 2];
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        drift->refills[i] += epoch->refills[i];
    for (unsigned i = 0; i < SIZE_BINS; i++)
        drift->large[i] += epoch->large[i];
}

static double summed(double sum, double deviation, double slack)
{
    double more = deviation - slack;
    sum += more < EPOCH_MOST ? more : EPOCH_MOST;
    return sum > 0 ? sum : 0;
}

bool drift_add(struct drift *drift, const struct epoch *epoch, double noise)
{
    if (drift->epochs < REFERENCE_EPOCHS) {
        add_to_reference(drift, epoch);
        return false;
    }
    struct mix before = mix_of(drift->refills, drift->large);
    struct mix now = mix_of(epoch->refills, epoch->large);
    double slack = noise > SLACK_LEAST ? noise : SLACK_LEAST;
    double cost = epoch_compared_cost(epoch);
    double deviation = drift->reference > 0 ? cost / drift->reference - 1 : cost > 0;
    drift->epochs++;
    drift->above = summed(drift->above, deviation, slack);
    drift->below = summed(drift->below, -deviation, slack);
    drift->others = epoch->changed || mix_differs(&before, &now) ? drift->others + 1 : 0;
    return drift->above > ALARM || drift->below > ALARM || drift->others >= OTHERS_MOST;
}
