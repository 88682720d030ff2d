#include "heap/keeper.h"

#include "heap/door.h"
#include "heap/freeze.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heap/view.h"

const struct keeper *current_keeper;

/* Its owner opens it no more, and empties it at its next visit (freeze_reopen). */
static void close_other(struct heap *heap)
{
    lock_take(&heap->lock);
    if (heap->tls != NULL)
        (void)freeze_close(heap);
    lock_drop(&heap->lock);
}

static void set(void *keeper)
{
    struct heap *own = view_load()->heap;
    /* Heaps come into the list under it: what is not in there yet sees the keeper. And not during a fork, which would not hold the keeper's
     * locks. */
    lock_take(&life_lock);
    store_release(&current_keeper, (const struct keeper *)keeper);
    lock_drop(&life_lock);
    life_clean_all();
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        if (heap != own)
            close_other(heap);
    if (own != NULL) {
        magazine_flush_all(own);
        freeze_show_twin(own);
    }
}

void keeper_set(const struct keeper *keeper)
{
    door_visit(set, (void *)(uintptr_t)keeper); /* in the door: a signal handler must not want the lock */
}
