/*
 * Spans: runs of units, cut from superslabs. A run of up to 128 units is taken from one superslab; a longer
 * one starts on a superslab and covers neighbours whole, up to the last. Either may be extended.
 *
 * Placement prefers units that were written before, which have their pages; then the tightest hole, of equal ones in the
 * fullest superslab, so that others become empty. Freed units keep their pages until span_purge_* gives them back: what is
 * in purge.c, when in decay.h.
 *
 * Any thread; every function takes locks of the span layer, of which there are several where many processors meet
 * (shards.h), and no function is called with one held. Tags and spans of the arena are the caller's to write.
 */
#ifndef HAK_SPAN_SPAN_H
#define HAK_SPAN_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "config/size_class.h"
#include "os/os.h"

/* Where the kernel would promise a process no more than there is, nor is more promised here: the program is told at once, and not
 * by a signal when it has used what there is. Its tables alone would take 1/480 of it. Takes no lock. */
ALWAYS_INLINE bool span_may_promise(size_t units)
{
    size_t bytes = units << UNIT_SHIFT;
    return LIKELY(bytes < GIB) || !os_is_beyond(bytes); /* a GiB any machine has */
}

/* A run of `units` units, its address a multiple of `align` units (a power of two). *zero says whether all of it reads
 * as zero. NULL: out of memory, or beyond the hard limit (limit.h). */
void *span_take(size_t units, size_t align, bool *zero);

struct span_run {
    unsigned units;
    unsigned align;
};

/* The same for `group`, of a superslab at most; where there is no place for it that was written before, but one for `fewer`, for those: memory
 * that the process has serves before what would be new to it. *group says what it became. */
void *span_take_group(struct span_run *group, struct span_run fewer, bool *zero);

/* Gives a run back, whole or a part of it; `dirty` if pages of it may have been written. */
void span_give(void *at, size_t units, bool dirty);

/* Takes the `units` units that follow a run, up to the end of their superslab, if they are free and within the hard
 * limit. *zero becomes false if they may not read as zero. */
bool span_extend(void *end, size_t units, bool *zero);

/* The caller keeps this many units of runs for ever: something foreign may be mapped there. */
void span_abandon(size_t units);

/* Gives back the pages of free units: of superslabs in which nothing was freed for as long as policy and history say
 * (decay.h; a time of clock_now_ms), until they come to `most` bytes; or of all. Returns the bytes given back. */
size_t span_purge_old(uint64_t now_ms, size_t most);
size_t span_purge_all(void);

/* Gives back the pages of about so many bytes of free units, in the superslabs first in which nothing was freed for the longest;
 * of huge pages none. It is not counted as too early when they are wanted again. Returns the bytes given back. */
size_t span_purge_some(size_t most);

/* Of free units that may hold pages; a moment old. Takes no lock. */
size_t span_dirty_bytes(void);

/* What serves a request for units, in this order. */
enum span_stage {
    SPAN_WARM,     /* units that have their pages */
    SPAN_PARTLY,   /* clean units of a superslab in use */
    SPAN_EMPTY,    /* a free superslab, or several */
    SPAN_NEW,      /* superslabs that were never used */
    SPAN_STAGES,
};

struct span_stats {
    size_t reserved_bytes;  /* address space of the range */
    size_t committed_bytes; /* of it, usable */
    size_t used_bytes;      /* of it, in runs */
    size_t dirty_bytes;     /* of free units that may hold pages */
    uint64_t purged_bytes;  /* given back, in sum */
    uint64_t served[SPAN_STAGES];
    uint64_t waits;         /* for the locks */
};

void span_stats(struct span_stats *stats);

/* The same without locks: each a moment old. */
void span_look(struct span_stats *stats);

/* The first two of them. */
struct span_range {
    size_t reserved_bytes;
    size_t committed_bytes;
};

extern HIDDEN struct span_range span_range;

/* So many processors may run the process: where they are many, threads are spread over several locks from now on. */
void span_spread(size_t processors);

/* Bytes of the range that are in memory: the kernel is asked, for each superslab. */
size_t span_resident_bytes(void);

/* In the child of a fork, which holds all locks: units that another thread was purging are free again. What the thread itself
 * was purging, if the fork comes from a signal handler, it goes on with afterwards. */
void span_after_fork(void);

/* For fork, and for calls from signal handlers: all locks there are. */
void span_lock_all(void);
void span_unlock_all(void);
bool span_lock_is_mine(void);

#endif
