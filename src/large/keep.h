/*
 * What becomes of freed large blocks: which of them are kept, and when they go back. What is kept lies in the BigCache (bigcache.h).
 * large_evict_before and its kin (large.h) are here, too.
 */
#ifndef HAK_LARGE_KEEP_H
#define HAK_LARGE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "large/large.h"

/* A kept block of at least so many units, of the site if there is one; NULL: none fits. */
struct large *keep_take(size_t units, uint32_t site);

/* A block that was freed, and is `kept` or not (bigcache_wants): its tag says that it is kept. */
void keep_put(struct large *block, bool kept);

/* Gives a block's run and its record back. */
void keep_release(struct large *block);

/* Gives back the oldest kept blocks, of so many units in sum: what none of them could serve takes their pages, or others that are
 * warm, where it would have grown the process. A moved block that is longer may stay until requests, and growth, have been as long
 * together; with `all_stay`, which is for growth, any longer one. */
void keep_make_room(size_t units, bool all_stay);

#endif
