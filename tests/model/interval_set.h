/*
 * The addresses that live blocks occupy, to catch two blocks that overlap at the moment the second is handed
 * out. One bit per 8 bytes of address space, claimed and released atomically by any thread.
 *
 * The atomics are relaxed on purpose: the set must not order threads that the allocator should have ordered,
 * or a race in the allocator would be hidden from TSan.
 */
#ifndef HAK_TEST_INTERVAL_SET_H
#define HAK_TEST_INTERVAL_SET_H

#include <stddef.h>

/* Before the first thread. */
void interval_set_init(void);

/* Claims [start, start + size), start being a multiple of 8; checks that nobody has any of it. */
void interval_set_claim(const void *start, size_t size);

/* Gives up what was claimed; checks that all of it was. To be called before the block is freed. */
void interval_set_release(const void *start, size_t size);

#endif
