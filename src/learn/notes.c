#include "learn/notes.h"

#include "learn/decisions.h"

static int64_t in_millionths(double share)
{
    return (int64_t)(share * 1e6);
}

static void note(const struct learner *learner, struct decision decision)
{
    decision.ms = learner->now_ms;
    decision.applied = !learner->observes;
    decision_note(&decision);
}

void note_state(const struct learner *learner, enum learner_state state)
{
    note(learner, (struct decision){.kind = DECIDED_STATE, .what = state, .before = learner->state, .after = state,
                                    .evidence = learner->epochs, .gain = in_millionths(match_share(learner->ledger.gain))});
}

struct succession {
    const struct learner *learner;
    uint64_t evidence;
    int64_t gain;
    bool has_pending;
    struct decision pending;
};

static void note_pending(struct succession *s)
{
    if (s->has_pending)
        note(s->learner, s->pending);
    s->has_pending = false;
}

/* Size classes that change in the same way are one decision. */
static void note_value(enum knob knob, unsigned index, uint64_t before, uint64_t after, void *data)
{
    struct succession *s = data;
    struct decision *pending = &s->pending;
    if (s->has_pending && pending->what == knob && pending->before == before && pending->after == after) {
        pending->subject++;
        return;
    }
    note_pending(s);
    s->has_pending = true;
    *pending = (struct decision){.kind = DECIDED_KNOB, .what = knob, .index = index, .before = before, .after = after,
                                 .evidence = s->evidence, .gain = s->gain};
}

void note_change(const struct learner *learner, unsigned from, unsigned to, uint64_t evidence, double gain)
{
    struct succession succession = {.learner = learner, .evidence = evidence, .gain = in_millionths(match_share(gain))};
    arm_each_difference(&learner->arms[from], &learner->arms[to], note_value, &succession);
    note_pending(&succession);
}

void note_estimate(const struct learner *learner, const struct prospect *prospect)
{
    uint64_t value = arm_value(&learner->arms[learner->champion], prospect->knob, prospect->index);
    uint64_t others = prospect->classes & (prospect->classes - 1);
    note(learner, (struct decision){.kind = DECIDED_KNOB, .what = prospect->knob, .index = prospect->index, .before = value,
                                    .after = evolution_step(prospect->knob, value, prospect->up), .evidence = learner->watched,
                                    .gain = in_millionths(prospect->worth),
                                    .subject = (uint64_t)__builtin_popcountll(others)});
}

void note_kill(const struct learner *learner, bool is_restless)
{
    note(learner, (struct decision){.kind = DECIDED_KILLED, .what = learner->state, .index = is_restless, .after = learner->rest,
                                    .evidence = learner->epochs});
}
