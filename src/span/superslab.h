/* The superslab's record and the index of superslabs by room. Internal to the span layer; everything is guarded by the lock of the
 * shard to which the superslab belongs (shards.h), and what concerns neighbours by the pool's. */
#ifndef HAK_SPAN_SUPERSLAB_H
#define HAK_SPAN_SUPERSLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/list.h"

struct span_shard;

/* Invariants: in the index exactly if committed with a free unit; a dirty bit stays while its unit is in a
 * run, and says there whether the unit may have been written before. */
struct superslab {
    struct list_node link;  /* in the index */
    struct list_node age;   /* in the queue of dirty ones */
    struct list_node purge; /* among those in purge */
    uint64_t freed_ms;      /* when a unit was last freed dirty, or it was last passed over */
    uint64_t purged_ms;     /* when units were last given back; 0: never */
    bits128 used;           /* bit u: unit u is in a run */
    bits128 dirty;          /* bit u: unit u may hold pages with content */
    bits128 purging;        /* bit u: unit u is free, and counts as used while its pages are given back */
    bool reserved;          /* part of the range */
    bool committed;
    bool queued;            /* in the queue of dirty ones */
    uint16_t filled;        /* pages of 4 KiB that it got by becoming a huge page, and that may count as absent */
    uint8_t collapses;      /* how often it became one */
    uint8_t settled;        /* passes at which all its units were used (huge.c) */
    bool huge;              /* it may be one huge page: whatever is free of it may hold pages. Changed with the pool's lock too */
    uint8_t shard;          /* to which it belongs, its number */
    uint8_t warm_most;      /* no more neighbours than that are free and dirty */
    uint32_t purger;        /* the thread that gives `purging` back (purge.c) */
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

/* That of an address in the range. */
ALWAYS_INLINE struct superslab *superslab_of(const void *at)
{
    return superslab_at(arena_unit(at) / SUPERSLAB_UNITS);
}

/* A bit for each of `units` units from `first` on. */
ALWAYS_INLINE bits128 superslab_run_mask(unsigned first, size_t units)
{
    return mask128((unsigned)units) << first;
}

/* One past the last index there is. */
size_t superslab_count(void);

/* The same, for who reads it from outside. */
extern HIDDEN size_t superslab_end;

/* Changes which units are used, keeping the index in step. If none is any more, the superslab goes to the pool. */
void superslab_set_used(struct superslab *s, bits128 used);

/* Changes which units may hold pages with content. */
void superslab_set_dirty(struct superslab *s, bits128 dirty);

/* Makes all units of neighbouring reserved superslabs usable, none of which is. False: out of memory. */
bool superslab_commit(size_t first, size_t count);

/* Free units: all, or those that were written before. */
enum room_kind { ROOM_ANY, ROOM_WARM, ROOM_KINDS };

/* A run of free units. */
struct place {
    struct superslab *superslab; /* NULL: there is none */
    unsigned first;
    unsigned left; /* of the hole that it is cut from */
};

/* In the shard, a run of `units` at a multiple of `align`, all written before if they are to be warm; of those looked at, where
 * least of a hole is left over, and then in the fullest superslab. */
struct place superslab_find(struct span_shard *shard, unsigned units, unsigned align, enum room_kind kind);

/* From its shard to another. */
void superslab_move(struct superslab *s, struct span_shard *to);

/* Notes whether a superslab is reserved, the pool's, and wholly free. The pool is locked. */
void superslab_note_whole(size_t index, bool whole);

/* The first of `count` neighbouring superslabs that are reserved and wholly free, its address a multiple of
 * `align` superslabs; committed or not, unless only `committed` ones will do. SIZE_MAX if there is none. */
size_t superslab_find_run(size_t count, size_t align, bool committed);

/* Enters newly reserved ones. */
void superslab_add(size_t first, size_t count);

#endif
