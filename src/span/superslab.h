/* The superslab's record and the index of superslabs by room. Internal to the span layer; everything is
 * guarded by the span lock. */
#ifndef HAK_SPAN_SUPERSLAB_H
#define HAK_SPAN_SUPERSLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/list.h"

/* Invariants: in the index exactly if committed with a free unit; a dirty bit stays while its unit is in a
 * run, and says there whether the unit may have been written before. */
struct superslab {
    struct list_node link;  /* in the index */
    struct list_node age;   /* in the queue of dirty ones, by freed_ms */
    struct list_node purge; /* among those in purge */
    uint64_t freed_ms;      /* when a unit was last freed dirty */
    uint64_t purged_ms;     /* when units were last given back; 0: never */
    bits128 used;           /* bit u: unit u is in a run */
    bits128 dirty;          /* bit u: unit u may hold pages with content */
    bits128 purging;        /* bit u: unit u is free, and counts as used while its pages are given back */
    bool reserved;          /* part of the range */
    bool committed;
    bool queued;            /* in the queue of dirty ones */
    uint16_t filled;        /* pages of 4 KiB that it got by becoming a huge page */
    uint8_t settled;        /* passes at which all its units were used (huge.c) */
    bool huge;              /* it may be one huge page: whatever is free of it may hold pages */
};

_Static_assert(sizeof(struct superslab) <= ARENA_SUPERSLAB_ENTRY, "superslab records fill their table");

ALWAYS_INLINE struct superslab *superslab_at(size_t index)
{
    return (struct superslab *)(void *)(arena.superslabs + index * ARENA_SUPERSLAB_ENTRY);
}

ALWAYS_INLINE char *superslab_base(size_t index)
{
    return arena.base + (index << SUPERSLAB_SHIFT);
}

ALWAYS_INLINE size_t superslab_index(const struct superslab *s)
{
    return (size_t)((const char *)s - arena.superslabs) / ARENA_SUPERSLAB_ENTRY;
}

ALWAYS_INLINE unsigned superslab_free_units(const struct superslab *s)
{
    return SUPERSLAB_UNITS - count_ones128(s->used);
}

/* A bit for each of `units` units from `first` on. */
ALWAYS_INLINE bits128 superslab_run_mask(unsigned first, size_t units)
{
    return mask128((unsigned)units) << first;
}

/* One past the last index there is. */
size_t superslab_count(void);

/* The same, and free units that may hold pages, for who reads them from outside. */
extern HIDDEN size_t superslab_end;
extern HIDDEN size_t superslab_dirty;

/* Changes which units are used, keeping the index in step. */
void superslab_set_used(struct superslab *s, bits128 used);

/* Changes which units may hold pages with content. */
void superslab_set_dirty(struct superslab *s, bits128 dirty);

/* Free units that may hold pages. Without the lock it is a moment old. */
size_t superslab_dirty_units(void);

/* Makes all units of neighbouring reserved superslabs usable, none of which is. False: out of memory. */
bool superslab_commit(size_t first, size_t count);

/* A committed superslab with a free run of `units` at a multiple of `align`, all written before if there is such a run
 * anywhere; of those looked at, where least of a hole is left over, and then the fullest. *first is the run's first unit.
 * NULL if there is none. */
struct superslab *superslab_find(unsigned units, unsigned align, unsigned *first);

/* The first of `count` neighbouring superslabs that are reserved and wholly free, its address a multiple of
 * `align` superslabs; committed or not. SIZE_MAX if there is none. */
size_t superslab_find_run(size_t count, size_t align);

/* Enters newly reserved ones. */
void superslab_add(size_t first, size_t count);

#endif
