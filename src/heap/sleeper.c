#include "heap/sleeper.h"

#include "base/atomic.h"
#include "heap/freeze.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/shelf.h"

void sleeper_collect(struct heap *heap)
{
    enum mail_state before = mail_state(heap);
    /* After the last time, its thread has not been at its door. */
    bool sleeps = before == MAIL_LATE || load_relaxed(&heap->frozen) == FREEZE_HOLES;
    if (before == MAIL_FINE)
        return;
    if (load_relaxed(&heap->tls) == NULL) {
        life_clean(heap);
        return;
    }
    if (!freeze_begin(heap))
        return;
    if (mail_state(heap) == MAIL_FINE) {
        /* of many senders one was here first */
    } else if (sleeps) {
        tally(heap, COUNT_EMPTIED);
        (void)freeze_empty(heap);
    } else {
        mail_collect(heap, false);
    }
    freeze_end(heap);
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
