/*
 * Closing a heap from outside, and emptying the magazines of a thread that sleeps.
 *
 * The thief takes heap.lock, sets frozen, points the owner's TLS word to the closed twin, and makes every
 * thread pass a barrier. Then either the owner is inside its door, and the thief gives up; or it is not, and
 * can only come to its door, where it sees frozen and waits for the lock: heap is as good as idle, but for
 * one hot operation in flight, which may still touch the slot at the top of a magazine or the one above.
 *
 * Only the owner opens its heap again, at its next visit to the door (freeze_reopen), also after a thief that
 * gave up and after a fork. Nobody but the owner ever writes top or budget.
 */
#ifndef HAK_HEAP_FREEZE_H
#define HAK_HEAP_FREEZE_H

#include "heap/heap.h"

enum freeze {
    FREEZE_NONE = 0,
    FREEZE_CLOSED = 1, /* as the owner left it */
    FREEZE_HOLES = 2,  /* a thief was here: magazines may have holes */
};

/* Freezes a heap that some other thread owns. True: it is frozen and its lock is held until freeze_end.
 * False: it has no thread or one that has gone, its owner is busy inside the door, or the kernel has no barrier. */
bool freeze_begin(struct heap *heap);
void freeze_end(struct heap *heap);

/* Gives back what the magazines, inbox and outboxes of a frozen heap hold. Returns the blocks taken. */
size_t freeze_empty(struct heap *heap);

/* Freezes a heap without looking whether its owner is inside the door; heap.lock is held, and tls is not NULL. False:
 * its owner's word is not to be found any more. */
bool freeze_close(struct heap *heap);

/* Does the owner's word point to the twin? tls is not NULL. */
bool freeze_is_closed(const struct heap *heap);

/* What the owner of a heap that nobody has frozen is to see: its own view, or, while there is a keeper, the twin. */
struct view *freeze_view(struct heap *heap);

/* The owner closes its own heap. */
void freeze_show_twin(struct heap *heap);

/* The owner, inside the door: waits for whoever froze the heap, makes it whole again and opens it, unless it stays closed for
 * a keeper. While a hot function is interrupted (interrupt.h), it only waits. */
void freeze_reopen(struct heap *heap);

#endif
