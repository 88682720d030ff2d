/* Giving the pages of free units back. Internal to the span layer; the superslab's shard is locked. */
#ifndef HAK_SPAN_PURGE_H
#define HAK_SPAN_PURGE_H

#include "span/superslab.h"

/* These units, still used, were written and are about to become free. */
void purge_note_dirty(struct superslab *s, bits128 units, uint64_t now_ms);

/* These free units are about to be used. */
void purge_note_taken(const struct superslab *s, bits128 units);

#endif
