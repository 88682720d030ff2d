/*
 * Threads that sleep, or compute, do not come to their doors: what others send them piles up, and what they cache lies
 * idle. Other threads see to that, each now and then, from inside their own doors.
 */
#ifndef HAK_HEAP_SLEEPER_H
#define HAK_HEAP_SLEEPER_H

#include "heap/heap.h"

/* Collects the mail of a heap where it has piled up (mail_state): of an idle heap, which is cleaned, or of one whose
 * thread is slow to. If that thread sleeps, what it caches is taken too. */
void sleeper_collect(struct heap *heap);

/* Looks at the mail of one other heap, the next each time. */
void sleeper_look(struct heap *own);

/* Empties the heaps of all other threads that are not inside their doors, and takes those of threads that have gone. Gives
 * back the holes in their slabs, and those of idle heaps. Returns the bytes of the holes. */
size_t sleeper_empty_all(const struct heap *own);

#endif
