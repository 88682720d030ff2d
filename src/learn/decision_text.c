#include "learn/decision_text.h"

#include <stdbool.h>

#include "config/size_class.h"
#include "learn/learner.h"

void knob_text(struct out *out, enum knob knob, unsigned index)
{
    out_print(out, "%s", knob_info[knob].name);
    if (knob_info[knob].count == SIZE_BINS)
        out_print(out, index == SIZE_BINS - 1 ? " of blocks above %zu KiB" : " of blocks up to %zu KiB",
                  (size_t)64 << (index == SIZE_BINS - 1 ? index - 1 : index));
    else if (knob_info[knob].count == SIZE_CLASSES)
        out_print(out, " of blocks of %u B", size_class_bytes(index));
}

static void knob_decision(struct out *out, const struct decision *decision)
{
    const struct knob_info *info = &knob_info[decision->what];
    out_print(out, decision->applied ? "set " : "would set ");
    knob_text(out, (enum knob)decision->what, (unsigned)decision->index);
    if (decision->subject > 0)
        out_print(out, ", and %lu more,", decision->subject);
    out_print(out, " from %lu to %lu %s", decision->before, decision->after, info->unit);
}

static void state_decision(struct out *out, uint32_t state)
{
    static const char sentences[LEARNER_STATES][42] = {
        [LEARNER_LEARNS] = "learns: policies compete",
        [LEARNER_FROZEN] = "frozen: the best policy stays in force",
        [LEARNER_CANARY] = "canary: is it still the best?",
        [LEARNER_RESTS] = "rests: the mode's own values are in force",
    };
    out_print(out, "%s", state < LEARNER_STATES ? sentences[state] : "another state");
}

static void class_decision(struct out *out, const struct decision *decision)
{
    bool opened = decision->kind == DECIDED_CLASS_OPENED;
    out_print(out, "%s a size class of %lu B",
              decision->applied ? opened ? "opened" : "closed" : opened ? "would open" : "would close", decision->subject);
}

static bool is_sound(const struct decision *decision)
{
    return decision->kind != DECIDED_KNOB || (decision->what < KNOBS && decision->index < knob_info[decision->what].count);
}

static void what_was_decided(struct out *out, const struct decision *decision)
{
    switch (decision->kind) {
    case DECIDED_KNOB:
        knob_decision(out, decision);
        break;
    case DECIDED_STATE:
        state_decision(out, decision->what);
        break;
    case DECIDED_CLASS_OPENED:
    case DECIDED_CLASS_CLOSED:
        class_decision(out, decision);
        break;
    case DECIDED_SITE:
        out_print(out, "%s freed blocks of site 0x%lx for %lu ms instead of %lu", decision->applied ? "keeps" : "would keep",
                  decision->subject, decision->after, decision->before);
        break;
    default:
        out_print(out, "stops: %s; rests for %lu epochs",
                  decision->index != 0 ? "the program is never the same for long" : "what was tried has cost more than it saved",
                  decision->after);
        break;
    }
}

void decision_text(struct out *out, const struct decision *decision)
{
    if (!is_sound(decision))
        return;
    uint64_t gain = (uint64_t)(decision->gain < 0 ? -decision->gain : decision->gain);
    bool expects = decision->kind != DECIDED_STATE && decision->kind != DECIDED_KILLED;
    what_was_decided(out, decision);
    bool by_epochs = decision->kind == DECIDED_KNOB || !expects;
    if (decision->evidence > 0)
        out_print(out, "; from %lu %s", decision->evidence, by_epochs ? "epochs" : "samples");
    bool of_classes = decision->kind == DECIDED_CLASS_OPENED || decision->kind == DECIDED_CLASS_CLOSED;
    if (expects && gain >= 1000)
        out_print(out, "; expected to %s %lu.%lu %% of the %s", decision->gain > 0 ? "save" : "add", gain / 10000, gain / 1000 % 10,
                  of_classes ? "memory of small blocks" : "cost");
}
