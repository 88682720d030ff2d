/*
 * The arena: one range of address space, cut into units of 8 KiB, and the tag map, which says of each unit
 * whose it is. 128 units are a superslab (1 MiB), and two superslabs, the first at an even index, make a huge page (2 MiB, aligned).
 * The hardened library's units, and so its superslabs, are twice as large (docs/decisions/0044).
 *
 * The range grows upward in steps and is never unmapped; where a foreign mapping stands in the way, the
 * units under it stay untagged. Tables indexed by unit or superslab lie at fixed distances below the range
 * and grow with it in place, so that a reader needs no lock: whatever is inside the limit has its entries.
 *
 * Locks: arena_init runs under the start-up lock, arena_grow under the span pool's. Everything else is
 * lock-free.
 */
#ifndef HAK_ARENA_ARENA_H
#define HAK_ARENA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "config/size_class.h"

enum {
    SUPERSLAB_UNITS = 128,
    SUPERSLAB_SHIFT = UNIT_SHIFT + 7,
    HUGE_SHIFT = 21,
    HUGE_SUPERSLABS = 1 << (HUGE_SHIFT - SUPERSLAB_SHIFT),
    POINTER_ALIGN_SHIFT = 3, /* every block is aligned to 8 */
};

#define SUPERSLAB_SIZE ((size_t)1 << SUPERSLAB_SHIFT)
#define HUGE_SIZE ((size_t)1 << HUGE_SHIFT)

/* A tag is the address of the owning heap | size class, or one of these kinds. Heaps never lie in the first
 * page, so TAG_KINDS separates the two. */
enum tag_kind {
    TAG_NONE = 0,       /* not ours, free, or not the first unit of a large block */
    TAG_LARGE = 1,      /* a live large block starts here */
    TAG_LARGE_KEPT = 2, /* a freed large block that the BigCache keeps starts here */
    TAG_LARGE_GONE = 3, /* a large block started here; its units were given up, and may be inside another by now */
    TAG_CHECKED = 4,    /* blocks of check mode's */
    TAG_SAMPLED = 5,    /* a slab of the profiler's */
    TAG_KINDS = 4096,
};

struct superslab; /* of the span layer */

struct arena {
    char *base;      /* of unit 0; aligned to HUGE_SIZE */
    uintptr_t limit; /* bytes of range in use >> POINTER_ALIGN_SHIFT; grows */
    uintptr_t *tags; /* one a unit */
    void **spans;    /* one a unit: the slab or check mode's run that holds it, or the large block that begins there; else NULL */
    char *superslabs; /* one entry of ARENA_SUPERSLAB_ENTRY bytes a superslab, for the span layer */
    uint64_t *whole;  /* one bit a superslab, for the span layer too; if there are more than 32, a word behind the last of them */
};

enum { ARENA_SUPERSLAB_ENTRY = 128 };

extern HIDDEN struct arena arena;

/* The address's distance from the base in words of 8 bytes; at least arena.limit for every pointer that is
 * outside the range or not a multiple of 8. One rotation makes both tests one compare. */
ALWAYS_INLINE uintptr_t arena_words(const void *p)
{
    return rotate_right((uintptr_t)p - (uintptr_t)load_in_place(&arena.base), POINTER_ALIGN_SHIFT);
}

ALWAYS_INLINE uintptr_t arena_unit_of_words(uintptr_t words)
{
    return words >> (UNIT_SHIFT - POINTER_ALIGN_SHIFT);
}

/* Index of the unit that holds p, an address inside the range. */
ALWAYS_INLINE size_t arena_unit(const void *p)
{
    return ((uintptr_t)p - (uintptr_t)arena.base) >> UNIT_SHIFT;
}

/* The tag of the unit so many words from the base. A thread may ask, of NULL, while another starts the allocator. */
ALWAYS_INLINE uintptr_t *arena_tag_at(uintptr_t words)
{
    return &load_in_place(&arena.tags)[arena_unit_of_words(words)];
}

/* The tag of any 64-bit value; TAG_NONE if it cannot be a block of ours. */
ALWAYS_INLINE uintptr_t arena_tag(const void *p)
{
    uintptr_t words = arena_words(p);
    if (words >= load_relaxed(&arena.limit))
        return TAG_NONE;
    return load_dependent(arena_tag_at(words));
}

/* The slab or large block that holds p, which must lie in a tagged unit. */
ALWAYS_INLINE void *arena_span(const void *p)
{
    return load_relaxed(&arena.spans[arena_unit(p)]);
}

/* Is it that of a slab, of a heap's or of the profiler's? */
ALWAYS_INLINE bool arena_is_slab(uintptr_t tag)
{
    return tag >= TAG_KINDS || tag == TAG_SAMPLED;
}

/* Sets the tag and span of the unit at `at`. */
ALWAYS_INLINE void arena_assign_unit(const void *at, uintptr_t tag, void *span)
{
    size_t unit = arena_unit(at);
    store_relaxed(&arena.spans[unit], span);
    store_release(&arena.tags[unit], tag);
}

/* Of `units` units from `at`. */
void arena_assign(void *at, size_t units, uintptr_t tag, void *span);

/* Finds a place for the range and its tables. False: there is no address space. */
bool arena_init(void);

/* Extends the range by at least `bytes` of contiguous reserved space, aligned to superslabs, and by more if
 * that can be had. On success *at and *got say what is new; it is not yet committed. */
bool arena_grow(size_t bytes, void **at, size_t *got);

#endif
