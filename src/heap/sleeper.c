#include "heap/sleeper.h"

#include "base/atomic.h"
#include "heap/freeze.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/shelf.h"

/* `others`: a heap that the room in its slabs goes to, or NULL. */
static void empty(struct heap *heap, struct heap *others)
{
    tally(heap, COUNT_EMPTIED);
    heap->believed_asleep = true;
    (void)freeze_empty(heap);
    if (others != NULL)
        shelf_hand_over(heap, others);
}

static void collect(struct heap *heap, bool sleeps, struct heap *others)
{
    if (!freeze_begin(heap))
        return;
    enum mail_state state = mail_state(heap);
    if (state == MAIL_FINE) {
        /* of many senders one was here first */
    } else if (sleeps) {
        empty(heap, state == MAIL_LEFT ? others : NULL); /* it may have become late meanwhile, or another thread's */
    } else {
        mail_collect(heap, false);
    }
    freeze_end(heap);
}

void sleeper_collect(struct heap *heap)
{
    enum mail_state before = mail_state(heap);
    /* After the last time, its thread has not been at its door. */
    bool sleeps = before >= MAIL_LATE || load_relaxed(&heap->frozen) == FREEZE_HOLES;
    if (before == MAIL_FINE)
        return;
    if (load_relaxed(&heap->tls) == NULL) {
        life_clean(heap);
        return;
    }
    /* Of many senders one is at it; if that leaves something, the next letter says so again. */
    if (lock_is_taken(&heap->lock))
        return;
    /* Who came back once may only wait for a processor at such times, and wants his slabs again. */
    struct heap *others = before == MAIL_LEFT && load_relaxed(&heap->woken) == 0 ? life_borrow() : NULL;
    collect(heap, sleeps, others);
    if (others != NULL)
        life_return(others);
}

void sleeper_look(struct heap *own)
{
    struct heap *heap = own->looked_at != NULL ? own->looked_at->next : NULL;
    if (heap == NULL)
        heap = life_heaps();
    own->looked_at = heap;
    if (heap != own)
        sleeper_collect(heap);
}

size_t sleeper_empty(struct heap *heap)
{
    if (load_relaxed(&heap->tls) == NULL || life_reclaim(heap))
        return life_purge(heap);
    if (!freeze_begin(heap))
        return 0;
    tally(heap, COUNT_EMPTIED);
    (void)freeze_empty(heap);
    size_t bytes = shelf_purge_all(heap);
    store_relaxed(&heap->emptied_received, heap->counts->of[COUNT_RECEIVED]);
    store_relaxed(&heap->emptied, !lock_is_wanted(&heap->lock)); /* else it may have stopped early */
    freeze_end(heap);
    return bytes;
}

size_t sleeper_empty_all(const struct heap *own)
{
    size_t bytes = 0;
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        if (heap != own)
            bytes += sleeper_empty(heap);
    return bytes;
}
