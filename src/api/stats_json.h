/* The statistics as one JSON object on one line: schema "hakmem-stats" (docs/statistics.md explains each field). */
#ifndef HAK_API_STATS_JSON_H
#define HAK_API_STATS_JSON_H

#include <stddef.h>

#include "os/out.h"

/* At the start of the program, from which its age is counted. */
void stats_begin(void);

/* So many of the learner's decisions are enough for what is written again soon. */
enum { DECISIONS_AGAIN = 32 };

/* With the latest `decisions` of the learner's. Inside the door, or with no heap. */
void stats_json(struct out *out, size_t decisions);

#endif
