/* Freed blocks wait here before their memory is used again, so that who still uses them does it while that is seen. */
#ifndef HAK_CHECK_QUARANTINE_H
#define HAK_CHECK_QUARANTINE_H

#include "check/run.h"

/* Takes a freed block in. The lock of its run is held. */
void quarantine_put_locked(struct checked *block);

/* The one that has waited longest, out of quarantine, if those of this shard are more than may wait, or if `any` will do.
 * NULL: none. The shard's lock is held. */
struct checked *quarantine_take_locked(unsigned shard, bool any);

#endif
