/* Decisions in words, for people. */
#ifndef HAK_LEARN_DECISION_TEXT_H
#define HAK_LEARN_DECISION_TEXT_H

#include "config/knobs.h"
#include "learn/decisions.h"
#include "os/out.h"

/* One sentence, without its full stop: what was decided, from what evidence, and what that is expected to save. */
void decision_text(struct out *out, const struct decision *decision);

/* The name of a knob, and of which blocks the value is: "bigcache_ms of blocks up to 128 KiB". */
void knob_text(struct out *out, enum knob knob, unsigned index);

#endif
