/* The part of the statistics that says which policy is in force, and what the learner has done. */
#ifndef HAK_API_LEARNER_JSON_H
#define HAK_API_LEARNER_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "os/out.h"

/* "mode", "knobs" that differ from it, "remembered" if a policy was loaded, and, if anything learns, "learner" and
 * "decisions": the latest `most` of them; `start_ms` is when the process started, since 1970. */
void learner_json(struct out *out, size_t most, uint64_t start_ms);

#endif
