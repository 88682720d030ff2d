/* Guarded blocks for tests. */
#ifndef HAK_TEST_GUARDS_H
#define HAK_TEST_GUARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "check.h"
#include "check/guard.h"
#include "config/policy.h"
#include "hakmem.h"
#include "os/os.h"

enum { GUARD_SLOTS = 8, GUARD_TRIES = 10000 };

/* A guarded sample each so many bytes, with GUARD_SLOTS places. */
static inline void guard_each(size_t bytes)
{
    policy.guard_bytes = bytes;
    policy.guard_slots = GUARD_SLOTS;
    guard_start();
}

static inline bool is_guarded(const void *p)
{
    struct guard_place place;
    return guard_find((uintptr_t)p, &place) && place.inside;
}

/* A guarded block; the others that were asked for until then are freed. */
static inline char *guarded(size_t size)
{
    for (int i = 0; i < GUARD_TRIES; i++) {
        char *block = hak_malloc(size);
        CHECK(block != NULL);
        if (is_guarded(block))
            return block;
        hak_free(block);
    }
    CHECK(!"no block is guarded");
    return NULL;
}

/* At one end of its page. */
static inline char *guarded_at(size_t size, bool at_start)
{
    for (int i = 0; i < GUARD_TRIES; i++) {
        char *block = guarded(size);
        if (((uintptr_t)block % os_page_size() == 0) == at_start)
            return block;
        hak_free(block);
    }
    CHECK(!"no block is at that end");
    return NULL;
}

#endif
