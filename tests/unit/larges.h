/* Large blocks for tests of the large layer. */
#ifndef HAK_TEST_LARGES_H
#define HAK_TEST_LARGES_H

#include "arena/arena.h"
#include "check.h"
#include "large/large.h"
#include "spans.h"

static inline void large_init(void)
{
    size_class_init();
    CHECK(arena_init());
}

static inline char *large_take(size_t bytes)
{
    bool zero;
    char *at = large_alloc(bytes, 1, &zero);
    CHECK(at != NULL);
    return at;
}

static inline enum large_verdict large_try_give(char *at)
{
    struct large_freed freed;
    return large_free(at, NULL, &freed);
}

static inline void large_give(char *at)
{
    CHECK(large_try_give(at) == LARGE_FINE);
}

/* It gets a neighbour, so that it cannot grow in place. */
static inline char *corner(char *at, size_t bytes)
{
    bool zero = false;
    while (span_extend(at + bytes, 1, &zero))
        ;
    return at;
}

#endif
