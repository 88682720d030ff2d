/*
 * Remote frees: blocks of other heaps travel in letters, from the sender's outbox (one per destination) to
 * the owner's inbox, a stack that anyone pushes to with one compare-and-swap and the owner takes whole.
 *
 * Heaps are immortal, so a letter always arrives. The block's tag may name another heap by the time it is
 * read: then it is forwarded.
 */
#ifndef HAK_HEAP_MAIL_H
#define HAK_HEAP_MAIL_H

#include "base/lock.h"
#include "heap/heap.h"

/* Puts p, a block of `to`, into an outbox, and posts the letter when it is full or the outboxes hold too many
 * bytes. False: there is no memory for a letter, and p stays the caller's. Sender inside its door. */
bool mail_send(struct heap *from, struct heap *to, void *p);

/* Posts all outboxes. */
void mail_post_all(struct heap *from);

/* Takes what the inbox holds: into magazines while there is room if `to_magazines` (owner inside the door
 * only), else into slabs. */
void mail_collect(struct heap *heap, bool to_magazines);

enum mail_state {
    MAIL_FINE,
    MAIL_MUCH, /* others should collect it: the owner is slow to */
    MAIL_LATE, /* the owner has not looked for long */
};

/* Of an inbox, seen from outside; about. */
enum mail_state mail_state(const struct heap *to);

ALWAYS_INLINE bool mail_waits(struct heap *heap)
{
    return __atomic_load_n(&heap->inbox, __ATOMIC_RELAXED) != NULL;
}

/* The heap that a tag names. */
ALWAYS_INLINE struct heap *mail_owner(uintptr_t tag)
{
    return (struct heap *)(tag & ~(uintptr_t)(SIZE_CLASSES - 1));
}

extern HIDDEN struct lock letters_lock;

#endif
