/*
 * Huge pages: the superslabs of one are put into it when all are full and have been for a while, in a process that is not small. It
 * saves the processor most misses of its tables of addresses; what of them was not in memory comes into it. When pages of one are
 * given back, that one is split again.
 */
#ifndef HAK_SPAN_HUGE_H
#define HAK_SPAN_HUGE_H

#include <stdbool.h>
#include <stdint.h>

#include "span/superslab.h"

/* Where no more than this part is free, by age nothing is given back of a huge page: it is not worth what the page saves. */
enum { HUGE_WHOLE_PART = 8 };

/* Looks at some superslabs, and puts one that has settled into a huge page, unless that was done a moment ago. Any thread; takes
 * all locks of the span layer, not for the system call that makes one, but for those that take back what did not come, or was given back
 * meanwhile. A time of clock_now_ms. */
void huge_consider(uint64_t now_ms);

/* Bytes that came into memory by becoming part of huge pages, and that whoever gave them back counts as absent. A moment old. */
extern HIDDEN size_t huge_filled;

/* Is the address in a superslab that may be a huge page? Takes no lock. */
bool huge_is_at(const void *at);

/* Is one of the units from there on? */
bool huge_is_in(const void *at, size_t units);

/* Forbids huge pages where they had been allowed in all of these units, but in what is one. */
void huge_forbid_others(char *at, size_t units);

/* Pages of the superslab, or of those that so many units are in, are given back: it is no huge page any more. The first two take the
 * lock of its shard, for the third it is held; all take the pool's. */
void huge_split_at(const void *at);
void huge_split_in(const void *at, size_t units);
void huge_split(struct superslab *s);

/* Some of its units are no longer in use: of what it was filled with no more counts than they are. The pool is locked, and its shard. */
void huge_bound_filled(struct superslab *s);

/* How often the superslab there became a huge page (modulo 256): what is known of its absent pages is as old as the last time. Takes
 * no lock. */
uint8_t huge_collapses_at(const void *at);

/* So many bytes of it no longer count as absent. Takes the lock of its shard, and the pool's. */
void huge_counts_again(const void *at, size_t bytes);

/* In the child of a fork, which holds all locks: another thread's call is over. */
void huge_after_fork(void);

#endif
