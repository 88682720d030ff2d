/*
 * A process that is about to hold more than it ever did first gives back what it holds for nothing.
 *
 * Free units that have pages often lie too far apart for the run that is wanted. Then others are taken, and the process holds
 * both: its peak is higher than what it uses. So about as many pages of free units go back as it grows by, however young they
 * are. They may be wanted again in a moment, and cost page faults: a process may offset a multiple of what it has grown by, and
 * no more, so that it pays in proportion to its peak. Below its peak it pays nothing. (Decision 40.)
 *
 * Whoever takes a run of units says so; what there is to give back, beside free units, the caller knows (large/large.h). No lock
 * of the span layer or of large blocks is held. Any thread; what several do at once is counted roughly.
 */
#ifndef HAK_SPAN_GROWTH_H
#define HAK_SPAN_GROWTH_H

#include <stddef.h>

/* Bytes that may be offset for each byte of growth. */
enum { GROWTH_OFFSETS = 6 };

/* A run was taken, of which so many bytes may be offset. If the process has grown by that: so many bytes are to be given back
 * now, then growth_end follows. Else 0. */
size_t growth_begin(size_t bytes);

/* Of what was wanted so much was given back. */
void growth_end(size_t wanted, size_t given);

#endif
