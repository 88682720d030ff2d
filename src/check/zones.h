/* What check mode writes into the memory of a block, and finds again if nobody else has written there. */
#ifndef HAK_CHECK_ZONES_H
#define HAK_CHECK_ZONES_H

#include <stdbool.h>
#include <stddef.h>

#include "check/run.h"

/* Memory for a block of `size` bytes, aligned to `align`, and a zone on either side. */
size_t zones_bytes(size_t size, size_t align);

/* Places such a block in its memory: sets its size and offset, and fills the zones. */
void zones_place(struct checked *block, size_t size, size_t align);

/* Makes a live block one of `size` bytes, what is new of it filled on request. False: its memory does not hold that. The lock of
 * its run is held. */
bool zones_resize(struct checked *block, size_t size, bool fill_new);

/* The first byte of a zone that was changed; NULL: none. */
const char *zones_changed(const struct checked *block);

/* Fills a new block, so that who reads what was never written sees nothing sensible. */
void zones_fill_new(const struct checked *block);

/* Fills memory that was freed. */
void zones_fill_freed(void *p, size_t bytes);

/* Fills a block that was freed; or closes its pages, if it is to wait before they are used again. */
void zones_poison(struct checked *block, bool waits);

/* The first byte of a freed block, or of its zones, that was changed; NULL: none. */
const char *zones_changed_after_free(const struct checked *block);

/* Is this a pointer, or a little more than one, that was read from new or from freed memory? */
bool zones_is_from_new(uintptr_t value);
bool zones_is_from_freed(uintptr_t value);

#endif
