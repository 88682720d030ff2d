/* Those of hakmem's public functions that other allocators do not have: without hakmem they do nothing. */
#ifndef HAK_SOAK_PUBLIC_H
#define HAK_SOAK_PUBLIC_H

#include <stdbool.h>
#include <stddef.h>

/* Does hakmem serve this process? */
bool public_is_there(void);

/* "hakmem VERSION", or that it is another. */
const char *public_name(void);

/* Without them public_trim does nothing, and public_purge leaves alone what threads have cached. To be said before there
 * are threads. */
void public_allow_trims(bool allow);

void public_purge(bool cached);
void public_trim(void);
void public_prewarm(size_t size, size_t count);
void public_set_limit(size_t soft, size_t hard);

/* True if the environment leaves limits, or the mode, to this process. */
bool public_may_set_limits(void);
bool public_may_set_mode(void);
void public_set_mode(const char *name);

#endif
