/*
 * For how long the freed blocks of a site are best kept: a pure function of how long trials have waited until they were wanted
 * again (large/site.h), and of what memory costs.
 */
#ifndef HAK_LEARN_PATIENCE_H
#define HAK_LEARN_PATIENCE_H

#include <stdint.h>

#include "large/site.h"

/* What it costs to touch a MiB for the first time: 256 pages, 2.5 us each (measured on the lab's machine). */
enum { TRIAL_FAULTS_NS = 640 * 1000 };

struct trials {
    uint32_t waits[SITE_TIMES];
    uint32_t unwanted;
};

uint32_t trials_count(const struct trials *trials);

/* What a patience saves for each MiB of the trials' blocks, in ns: page faults, less memory held. A block of the site's size is
 * kept for `age_ms`, 2^patience times; a MiB held for a second costs `price_ns`. */
int64_t patience_saves(const struct trials *trials, unsigned patience, uint64_t age_ms, uint32_t price_ns);

/* The best patience, 0 to PATIENCE_NONE. It stays `now` if another is not clearly better, or there are few trials. */
unsigned patience_choose(const struct trials *trials, unsigned now, uint64_t age_ms, uint32_t price_ns);

#endif
