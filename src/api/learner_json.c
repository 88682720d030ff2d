#include "api/learner_json.h"

#include "api/remember.h"
#include "base/atomic.h"
#include "config/knobs.h"
#include "config/policy.h"
#include "learn/decision_text.h"
#include "learn/decisions.h"
#include "learn/learn.h"
#include "learn/learner.h"
#include "learn/policy_text.h"

static const char *row_of_knob(struct out *out, enum knob knob, unsigned index, const char *before)
{
    uint64_t value = knob_get(knob, index);
    uint64_t usual = knob_of_mode(knob, index);
    if (value == usual)
        return before;
    out_print(out, "%s{\"name\":\"%s\"", before, knob_info[knob].name);
    if (knob_info[knob].count > 1)
        out_print(out, ",\"index\":%u", index);
    out_print(out, ",\"value\":%lu,\"of_mode\":%lu,\"pinned\":%s}", value, usual, knob_is_pinned(knob) ? "true" : "false");
    return ",";
}

static void knobs(struct out *out)
{
    const char *before = "";
    out_print(out, ",\"knobs\":[");
    for (enum knob knob = 0; knob < KNOBS; knob++)
        for (unsigned i = 0; i < knob_info[knob].count; i++)
            before = row_of_knob(out, knob, i, before);
    out_print(out, "]");
}

static void row_of_decision(struct out *out, const struct decision *decision, uint64_t start_ms, const char *before)
{
    static const char kinds[][13] = {"knob", "state", "class opened", "class closed", "site", "stopped"};
    out_print(out, "%s{\"unix_ms\":%lu,\"kind\":\"%s\",\"text\":\"", before, start_ms + decision->ms,
              decision->kind < sizeof kinds / sizeof kinds[0] ? kinds[decision->kind] : "other");
    decision_text(out, decision);
    out_print(out, "\",\"evidence\":%lu,\"gain_ppm\":%ld,\"applied\":%s}", decision->evidence, decision->gain,
              decision->applied ? "true" : "false");
}

static void decisions(struct out *out, size_t most, uint64_t start_ms)
{
    const char *before = "";
    uint64_t end = decisions_noted();
    out_print(out, ",\"decisions\":[");
    for (uint64_t number = end > most ? end - most : 0; number < end; number++) {
        struct decision decision;
        if (!decision_get(number, &decision))
            continue;
        row_of_decision(out, &decision, start_ms, before);
        before = ",";
    }
    out_print(out, "]");
}

/* Nothing, where nothing has ever learned: classes may be fitted without it. */
static void learner(struct out *out)
{
    struct learn_summary now;
    learn_summary(&now);
    if (load_relaxed(&policy.learn) == LEARN_OFF && now.arms == 0)
        return;
    out_print(out, ",\"learner\":{\"learns\":\"%s\",\"state\":\"%s\"", policy_learn_name(),
              learner_state_name((unsigned)now.state));
    out_print(out, ",\"epochs\":%lu,\"learn_ms\":%lu,\"mode_cost\":%lu,\"cost\":%lu,\"saved_ppm\":%ld", now.epochs, now.learn_ms,
              now.mode_cost, now.cost, now.saved_ppm);
    out_print(out, ",\"arms\":%lu,\"best_rating\":%ld,\"best_deviation\":%lu,\"changes\":%lu,\"matches\":%lu", now.arms,
              now.best_rating, now.best_deviation, now.changes, now.matches);
    out_print(out, ",\"drifts\":%lu,\"canaries\":%lu,\"rollbacks\":%lu,\"kills\":%lu}", now.drifts, now.canaries, now.rollbacks,
              now.kills);
}

static void remembered(struct out *out)
{
    struct policy_evidence known;
    if (remember_has(&known))
        out_print(out, ",\"remembered\":{\"epochs\":%lu,\"seconds\":%lu,\"saved_ppm\":%lu}", known.epochs, known.seconds,
                  known.saved);
}

void learner_json(struct out *out, size_t most, uint64_t start_ms)
{
    out_print(out, ",\"mode\":\"%s\"", policy_mode_name());
    knobs(out);
    remembered(out);
    if (load_relaxed(&policy.learn) == LEARN_OFF && decisions_noted() == 0)
        return;
    learner(out);
    decisions(out, most, start_ms);
}
