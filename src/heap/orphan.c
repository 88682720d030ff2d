#include "heap/orphan.h"

#include "arena/arena.h"
#include "base/atomic.h"
#include "heap/classes.h"
#include "heap/fork.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/report.h"
#include "heap/shelf.h"
#include "heap/stock.h"

struct lock orphan_lock = LOCK_INITIALIZER(LOCK_ORPHAN);

static struct heap *orphan;
static bool has_mail; /* in its outboxes */

/* Takes the lock and returns the orphan heap; NULL, without the lock, if there is no memory for one, or the
 * caller must not wait. */
static struct heap *enter(void)
{
    if (fork_holds_any_lock())
        return NULL;
    lock_take(&orphan_lock);
    if (orphan == NULL)
        store_release(&orphan, life_birth(NULL));
    struct heap *made = orphan;
    if (made == NULL)
        lock_drop(&orphan_lock); /* from here on another thread may make it */
    return made;
}

/* A class made at run time may become another, or be no more, once the table has been read (classes.h). */
static void *take_one(struct heap *heap, size_t size)
{
    for (;;) {
        void *block;
        uint32_t undone = load_acquire(&classes_undone);
        unsigned class = size_class_of(size);
        if (shelf_take(heap, class, &block, 1) == 0) {
            if (classes_stayed(size, class, undone))
                return NULL;
        } else if (size <= size_classes[class].size) {
            return block;
        } else {
            shelf_put(heap, block);
        }
    }
}

void *orphan_malloc(size_t size)
{
    struct heap *heap = enter();
    if (heap == NULL)
        return NULL;
    if (mail_waits(heap)) {
        mail_collect(heap, false);
        store_relaxed(&has_mail, true); /* of what came, some may have been another's, to be sent on */
    }
    void *block = take_one(heap, size);
    lock_drop(&orphan_lock);
    return block;
}

bool orphan_free(void *p)
{
    struct heap *heap = enter();
    if (heap == NULL)
        return false;
    /* Read now: the orphan heap may have been idle before, and have lost the slab to another. */
    uintptr_t tag = arena_tag(p);
    bool sent = true;
    if (tag < TAG_KINDS)
        report_pointer(FAULT_DOUBLE_FREE, p);
    if (mail_owner(tag) == heap) {
        shelf_put(heap, p);
    } else {
        sent = mail_send(heap, mail_owner(tag), p);
        store_relaxed(&has_mail, true);
    }
    lock_drop(&orphan_lock);
    return sent;
}

void orphan_tidy(void)
{
    struct heap *heap = load_acquire(&orphan);
    if (heap == NULL || (!load_relaxed(&has_mail) && !mail_waits(heap)))
        return;
    lock_take(&orphan_lock);
    mail_collect(heap, false);
    mail_post_all(heap);
    shelf_release_empty(heap);
    stock_trim(heap);
    store_relaxed(&has_mail, false);
    lock_drop(&orphan_lock);
}
