/*
 * Remote frees: blocks of other heaps travel in letters, from the sender's outbox (one per destination) to
 * the owner's inbox, a stack that anyone pushes to with one compare-and-swap and the owner takes whole.
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

/* Reads letters until the magazine of the class, which is empty, has a block; the rest stays unread. False: there was none. Owner
 * inside the door only. */
bool mail_fill(struct heap *heap, unsigned class);

enum mail_state {
    MAIL_FINE,
    MAIL_MUCH, /* others should collect it: the owner is slow to */
    MAIL_LATE, /* the owner has not looked for long */
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

/* The outbox of `from` for blocks of `to`, if that has one. By the address: nothing is read of what the owner of `to` writes. */
ALWAYS_INLINE struct outbox *mail_outbox(struct heap *from, const struct heap *to)
{
    return &from->outbox[(uintptr_t)to / HEAP_ALIGN % OUTBOXES];
}

/* Into the letter of an outbox, which has room. */
ALWAYS_INLINE void mail_put(struct heap *from, struct outbox *box, void *p, size_t bytes)
{
    struct letter *letter = box->letter;
    letter->block[letter->count++] = p;
    box->bytes += bytes;
    from->outbox_bytes += bytes;
    tally(from, COUNT_SENT);
}

/* As mail_send of a block with this tag, if that is no more than a word in a letter that stays open. False: nothing was done. */
ALWAYS_INLINE bool mail_add(struct heap *from, uintptr_t tag, void *p)
{
    struct heap *to = mail_owner(tag);
    struct outbox *box = mail_outbox(from, to);
    size_t bytes = size_classes[tag % SIZE_CLASSES].size;
    if (box->to != to || box->letter == NULL || box->letter->count >= LETTER_BLOCKS - 1
        || from->outbox_bytes + bytes > OUTBOX_BYTES_MOST)
        return false;
    mail_put(from, box, p, bytes);
    return true;
}

extern HIDDEN struct lock letters_lock;

#endif
