/*
 * Remote frees: blocks of other heaps travel in letters, from the sender's outboxes (by the number of the owner's heap)
 * to the owner's inbox, a stack that anyone pushes to with one compare-and-swap and the owner takes whole.
 *
 * Heaps are immortal, so a letter always arrives. The block's tag may name another heap by the time it is
 * read: then it is forwarded.
 */
#ifndef HAK_HEAP_MAIL_H
#define HAK_HEAP_MAIL_H

#include "base/atomic.h"
#include "base/lock.h"
#include "heap/heap.h"
#include "heap/letter.h"

/* Most that the blocks in all outboxes of a heap hold. */
#define OUTBOX_BYTES_MOST (64 * KIB)

/* Puts p, a block of `to`, into an outbox, and posts the letter when it is full or the outboxes hold too many
 * bytes. False: there is no memory for a letter, and p stays the caller's. Sender inside its door. */
bool mail_send(struct heap *from, struct heap *to, void *p);

/* Posts all outboxes. */
void mail_post_all(struct heap *from);

/* Takes what the inbox holds, and what is unread: into magazines while there is room if `to_magazines` (owner inside the door
 * only), else into slabs. */
void mail_collect(struct heap *heap, bool to_magazines);

/* Reads letters until the magazine of the class has a block; the rest stays unread. False: none was read that gave it one. Owner
 * inside the door only. */
bool mail_fill(struct heap *heap, unsigned class);

enum mail_state {
    MAIL_FINE,
    MAIL_MUCH, /* others should collect it: the owner is slow to */
    MAIL_LATE, /* the owner has not looked for long */
    MAIL_LEFT, /* much of the heap was sent, and the owner has not been at its door meanwhile */
};

/* Of an inbox, seen from outside; about. */
enum mail_state mail_state(const struct heap *to);

ALWAYS_INLINE bool mail_waits(struct heap *heap)
{
    return load_relaxed(&heap->inbox) != NULL || load_relaxed(&heap->unread) != NULL;
}

/* The heap that a tag names. */
ALWAYS_INLINE struct heap *mail_owner(uintptr_t tag)
{
    return (struct heap *)(tag & ~(uintptr_t)(SIZE_CLASSES - 1));
}

/* Where `from` has its open letter for `to`, or for another heap. Of `to` nothing is read that its owner writes. */
ALWAYS_INLINE struct letter **mail_outbox(struct heap *from, const struct heap *to)
{
    return &from->outbox[to->number % OUTBOXES];
}

/* Into an open letter, which has room. */
ALWAYS_INLINE void mail_put(struct heap *from, struct letter *letter, void *p, uint32_t bytes)
{
    letter->block[letter->count++] = p;
    letter->bytes += bytes;
    from->outbox_bytes += bytes;
    tally(from, COUNT_SENT);
}

/* The last that was put into an open letter, which has one. */
ALWAYS_INLINE void *mail_last(const struct letter *letter)
{
    return letter->block[letter->count - 1];
}

/* As mail_send of a block of a slab with this tag, if that is no more than a word in a letter that stays open. False: nothing was done. */
ALWAYS_INLINE bool mail_add(struct heap *from, uintptr_t tag, void *p)
{
    struct heap *to = mail_owner(tag);
    struct letter *letter = *mail_outbox(from, to);
    uint32_t bytes = size_classes[tag % SIZE_CLASSES].size;
    if (letter == NULL || letter->to != to || letter->count >= LETTER_BLOCKS - 1
        || from->outbox_bytes + bytes > OUTBOX_BYTES_MOST || mail_last(letter) == p)
        return false;
    mail_put(from, letter, p, bytes);
    return true;
}

extern HIDDEN struct lock letters_lock;

#endif
