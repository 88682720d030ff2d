/*
 * Which places in the program request large blocks, and what is best for the blocks of each.
 *
 * A place is known by a word: the program's own (hak_alloc_at), or, with no change to the program, a hash of the stack. Stacks
 * are taken of few requests, the first from their place; which of these places another request comes from is seen by its
 * size, its return address and how deep the stack is. Words of stacks are the same in each run of a program.
 *
 * What is counted of a site is in large/site.h. Nothing here takes a lock or waits. No site is forgotten: when there are SITES,
 * others stay unknown.
 */
#ifndef HAK_LEARN_SITES_H
#define HAK_LEARN_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "heap/events.h"
#include "large/site.h"

/* The number of the site with this word, which gets one if it has none. SITE_NONE: the word is 0, or there is no number left. Any
 * thread, in its door. */
uint32_t sites_number(uintptr_t word);

/* The same for a request (heap_events.site): of the site that the program has named, or that the stack tells, if it is worth a
 * look or its shape is known. */
uint32_t sites_of_request(const struct site_request *request);

/* At the end of an epoch that has cost `ns`: if it `decides`, how long each site's blocks are kept is decided anew, and noted; `ms` since
 * the learner's start. It must not where a policy is in force that is only tried: a site's time is a multiple of the policy's. If the
 * learner only observes, no more than that. One thread at a time. */
void sites_epoch(uint64_t ms, uint64_t ns, bool decides);

/* Calls each(number, site, data) for the sites that there are. The site may change meanwhile. Any thread. */
void sites_each(void (*each)(uint32_t number, const struct large_site *site, void *data), void *data);

/* All blocks are kept as others again, until the learner decides anew. Any thread. */
void sites_reset(void);

/* Of a saved policy: the site's blocks are kept 2^patience times as long as others, or, with PATIENCE_NONE, not. Other values do
 * nothing. In force whether the learner is on or not. At the start. */
void sites_preset(uintptr_t word, unsigned patience);

#endif
