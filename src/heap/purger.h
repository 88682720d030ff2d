/*
 * The purger: a thread that gives back the memory of programs that no longer ask for any, and so have no heartbeat.
 *
 * It is started when much could be given back, looks once in each delay, and ends when it finds nothing more, and no thread that is
 * awake holds much: one that falls asleep starts nothing. Its look
 * at a sleeping thread's heap is that of any thief (freeze.h); at most one slab's pages are given back while the heap's
 * owner waits.
 */
#ifndef HAK_HEAP_PURGER_H
#define HAK_HEAP_PURGER_H

#include "heap/heap.h"

/* What one look at all heaps came to. */
struct purger_look {
    size_t given_back;  /* bytes */
    size_t active_free; /* that could be taken from heaps whose owner was at its door since the last look, if he slept */
    uint32_t active;    /* those heaps */
};

/* Takes what is cached from heaps whose owner was not at its door since the last look, gives back the holes in their
 * slabs, and what has been free for long. One thread at a time, with no heap of its own. */
struct purger_look purger_look(void);

/* Notes what could be taken from this heap, and counts what could be from others. At a heartbeat; owner inside its door. */
void purger_note_beat(struct heap *heap);

/* Starts the purger if it seems to be worth it and does not run yet. Owner of `heap`, inside its door, or its last owner, who has left
 * it; no lock held. */
void purger_consider(struct heap *heap);

/* Starts it now and then while there are more and more heaps. The new heap's thread, no lock held. */
void purger_note_birth(const struct heap *heap);

/* In the child of a fork: no purger runs here. */
void purger_after_fork(void);

#endif
