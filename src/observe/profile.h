/*
 * The heap profiler: samples of what is requested, live, and freed, by stack (docs/decisions/0027).
 *
 * A sample is one request in so many bytes (heap/budget.h). A small one is served from slabs of the profiler's own
 * (profile_slabs.h), a large one has a mark in its record. Both are counted by site (profile_sites.h).
 *
 *   door: the budget is spent, at a sample ─▶ profiler.take │ note ─▶ stack, depot, site, record
 *   door: free of a sampled block ─────────▶ profiler.put │ freed ─▶ site
 */
#ifndef HAK_OBSERVE_PROFILE_H
#define HAK_OBSERVE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bits.h"

#define PROFILE_RATE_DEFAULT (512 * KIB)
#define PROFILE_RATE_MOST TIB

/* Begins a profile with one sample in `rate` bytes on average (0: the default; 1: each request), and forgets what was counted
 * before. Threads notice by their next heartbeat. Returns 0, EALREADY: there is one; EINVAL: the rate is too large; ENOTSUP:
 * a keeper serves (check mode); ENOMEM; EDEADLK: a signal handler asks that has interrupted the allocator.
 *
 * These are called by any thread, inside its door or not. */
int profile_start(size_t rate);

/* Takes no more samples. Those that live are still counted, and their frees. Returns 0, or EALREADY: none are taken. */
int profile_stop(void);

/* Is one in progress? */
bool profile_runs(void);

#endif
