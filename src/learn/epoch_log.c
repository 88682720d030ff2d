#include "learn/epoch_log.h"

#include "base/fail.h"
#include "base/fmt.h"
#include "learn/decision_text.h"
#include "os/out.h"

enum { RATINGS_MOST = 200, KNOB_MOST = 100 };

static uint32_t told[ARMS]; /* which arm of each place has been */

struct duel {
    uint32_t arm;
    uint32_t champion;
};

static void tell_difference(enum knob knob, unsigned index, uint64_t champions, uint64_t arms, void *data)
{
    const struct duel *duel = data;
    char text[KNOB_MOST];
    struct out out;
    out_to_memory(&out, text, sizeof text - 1);
    knob_text(&out, knob, index);
    text[out.length] = '\0';
    note("hakmem: arm %u, unlike champion %u: %s is %lu %s instead of %lu", duel->arm, duel->champion, text, arms, knob_info[knob].unit,
         champions);
}

/* What it is that competes, when it does for the first time. */
static void tell_arm(const struct learner *learner)
{
    const struct arm *arm = &learner->arms[learner->in_force];
    const struct arm *champion = &learner->arms[learner->champion];
    struct duel duel = {arm->made, champion->made};
    if (arm == champion || told[learner->in_force] == arm->made)
        return;
    told[learner->in_force] = arm->made;
    arm_each_difference(champion, arm, tell_difference, &duel);
}

/* "number:rating:deviation" of each arm that has played. */
static void write_ratings(char *text, const struct learner *learner)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < ARMS; i++) {
        const struct arm *arm = &learner->arms[i];
        if (arm->made != 0 && arm->elo.matches != 0)
            length += fmt_print(text + length, RATINGS_MOST - length, " %u:%ld:%ld", arm->made, (long)arm->elo.rating,
                                (long)arm->elo.deviation);
    }
}

static unsigned long held_kib(const struct epoch *epoch)
{
    uint64_t bytes = epoch_held(epoch, COST_CACHED) + epoch_held(epoch, COST_KEPT) + epoch_held(epoch, COST_DIRTY);
    return bytes / KIB;
}

void epoch_log(const struct learner *learner, const struct epoch *epoch)
{
    char ratings[RATINGS_MOST];
    write_ratings(ratings, learner);
    tell_arm(learner);
    note("hakmem: epoch: %lu ms: %s, arm %u of champion %u, lasts %lu ms, requested %lu KiB, cost %lu ns, held %lu KiB, work %lu ns,"
         " ratings%s", epoch->end_ms, learner_state_name(learner->state), learner->arms[learner->in_force].made,
         learner->arms[learner->champion].made, epoch->ms, (unsigned long)(epoch->requested / KIB), epoch_ns(epoch),
         held_kib(epoch), epoch->work_ns, ratings);
}
