/*
 * Threads that sleep, or compute, do not come to their doors: what others send them piles up, and what they cache lies
 * idle. Other threads see to that, each now and then, from inside their own doors.
 */
#ifndef HAK_HEAP_SLEEPER_H
#define HAK_HEAP_SLEEPER_H

#include "heap/heap.h"

/* Collects the mail of a heap where it has piled up (mail_state): of an idle heap, which is cleaned, or of one whose
 * thread is slow to. If that thread sleeps, what it caches is taken too; and what is free in its slabs given to others, if it
 * has not been at its door since much of its heap was sent to it. */
void sleeper_collect(struct heap *heap);

/* Looks at the mail of one other heap, the next each time. */
void sleeper_look(struct heap *own);

/* Empties a heap that is idle, or whose thread is not inside its door, and gives back the holes in its slabs. Takes it
 * from a thread that has gone. Returns the bytes of the holes. */
size_t sleeper_empty(struct heap *heap);

/* The same for all heaps but this one. */
size_t sleeper_empty_all(const struct heap *own);

#endif
