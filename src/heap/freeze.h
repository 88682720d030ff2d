/*
 * Closing a heap from outside, and emptying the magazines of a thread that sleeps.
 *
 * The thief takes heap.lock, sets frozen, points the owner's TLS word to the closed twin, and makes every
 * thread pass a barrier. Then either the owner is inside its door, and the thief gives up; or it is not, and
 * can only come to its door, where it sees frozen and waits for the lock: heap is as good as idle, but for
 * one hot operation in flight, which may still touch the slot at the top of a magazine or the one above.
 *
 * The owner reopens its heap at its next visit to the door (freeze_reopen). Nobody but the owner ever writes
 * top, end or budget.
 */
#ifndef HAK_HEAP_FREEZE_H
#define HAK_HEAP_FREEZE_H

#include "heap/heap.h"

enum freeze {
    FREEZE_NONE = 0,
    FREEZE_THIEF = 1, /* magazines may have holes */
    FREEZE_FORK = 2,  /* ends with the fork */
};

/* Freezes a heap that some other thread owns. True: it is frozen and its lock is held until freeze_end.
 * False: it has no thread, its owner is busy inside the door, or the kernel has no barrier. */
bool freeze_begin(struct heap *heap);
void freeze_end(struct heap *heap);

/* Gives back what the magazines, inbox and outboxes of a frozen heap hold. Returns the blocks taken. */
size_t freeze_empty(struct heap *heap);

/* Sends the owner of a heap to its closed twin; heap.lock is held, and tls is not NULL. */
void freeze_redirect(struct heap *heap, enum freeze reason);

/* Sends the owner back to its own view. heap.lock is held, and tls is not NULL. */
void freeze_undo(struct heap *heap);

/* The owner, inside the door: waits for whoever froze the heap and makes it whole again. */
void freeze_reopen(struct heap *heap);

#endif
