/*
 * What the learner sees of the allocator: the counts that statistics show, taken as differences over an epoch, at prices
 * (prices.h).
 *
 * Each heap is read by its own thread, at its heartbeats, when its counts are in the processor's cache; nobody walks over all
 * heaps. What a heap did counts from its first heartbeat under a policy: what it did before, under another one, stays out. Of
 * what is counted for the process (faults, calls, memory held) there is no such part, so it is divided by what was requested.
 *
 * The caller keeps others out meanwhile.
 */
#ifndef HAK_LEARN_SIGNALS_H
#define HAK_LEARN_SIGNALS_H

#include "heap/heap.h"
#include "learn/epoch.h"

/* Heaps that are looked at at once, by their number. */
enum { HEAPS_SEEN = 256 };

/* What is common to all heaps. */
struct signals_shared {
    uint64_t calls;
    uint64_t runs;    /* of units */
    uint64_t purged;
    uint64_t waits;
    uint64_t faults;
    uint64_t work_ns;
};

struct signals {
    struct heap_seen *heaps[HEAPS_SEEN]; /* NULL: never seen */
    uint32_t reign;       /* of one policy: over all epochs until another is in force */
    uint64_t began_ms;
    uint64_t looked_ms;   /* at what is held */
    uint64_t cached;      /* bytes that all magazines may hold */
    struct epoch sum;
    uint64_t straddled;   /* bytes requested up to heaps' first heartbeats in the epoch: in no sum, but common costs are theirs too */
    struct signals_shared at_begin;
    bool is_halved;
    uint32_t half_refills[SIZE_CLASSES];
    uint32_t half_large[SIZE_BINS];
};

/* An epoch begins; another policy has come into force since the last one, or not. */
void signals_begin(struct signals *signals, bool is_other_policy, uint64_t now_ms);

/* A heartbeat, of a heap by its owner, inside the door. Of several in the same instant the first is looked at. */
void signals_beat(struct signals *signals, const struct heap *heap, uint64_t now_ms);

/* Half of the epoch is over: if the other half differs, the program has changed in it. */
void signals_halve(struct signals *signals);

/* The epoch ends; the process started at `start_ms`. */
void signals_end(struct signals *signals, uint64_t now_ms, uint64_t start_ms, struct epoch *epoch);

#endif
