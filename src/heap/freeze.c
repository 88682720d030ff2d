#include "heap/freeze.h"

#include "base/atomic.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heap/view.h"
#include "os/os.h"

/* The twin's budget is 0, so that malloc comes to the door before it looks at a bin. */
static void set_up_twin(struct heap *heap)
{
    if (heap->twin.heap == heap)
        return;
    view_close(&heap->twin);
    heap->twin.kind = VIEW_TWIN;
    heap->twin.heap = heap;
}

void freeze_redirect(struct heap *heap, enum freeze reason)
{
    set_up_twin(heap);
    store_relaxed(&heap->frozen, (uint32_t)reason);
    store_release(heap->tls, &heap->twin);
}

void freeze_undo(struct heap *heap)
{
    store_relaxed(&heap->frozen, (uint32_t)FREEZE_NONE);
    store_release(heap->tls, &heap->view);
}

bool freeze_begin(struct heap *heap)
{
    lock_take(&heap->lock);
    if (heap->tls == NULL) {
        lock_drop(&heap->lock);
        return false;
    }
    bool was_frozen = load_relaxed(&heap->frozen) == FREEZE_THIEF;
    freeze_redirect(heap, FREEZE_THIEF);
    if (os_barrier() && load_acquire(&heap->in_door) == 0)
        return true;
    if (!was_frozen)
        freeze_undo(heap);
    lock_drop(&heap->lock);
    return false;
}

void freeze_end(struct heap *heap)
{
    lock_drop(&heap->lock);
}

/* Takes the blocks below the top slot: an operation in flight may pop that one, or push above it. */
static size_t empty_magazine(struct heap *heap, unsigned class)
{
    void **slots = heap->shelf[class].slots;
    if (slots == NULL)
        return 0;
    size_t taken = 0;
    void **top = load_relaxed(&heap->view.bin[class].top);
    for (void **slot = slots + 1; slot < top; slot++) {
        void *p = load_relaxed(slot);
        if (p == NULL)
            continue;
        if (!magazine_give_back(heap, class, p))
            continue;
        store_relaxed(slot, NULL);
        taken++;
    }
    return taken;
}

size_t freeze_empty(struct heap *heap)
{
    size_t taken = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        taken += empty_magazine(heap, class);
    mail_collect(heap, false);
    mail_post_all(heap);
    shelf_release_empty(heap);
    stock_trim(heap);
    return taken;
}

void freeze_reopen(struct heap *heap)
{
    lock_take(&heap->lock);
    if (load_relaxed(&heap->frozen) == FREEZE_THIEF)
        magazine_compact(heap);
    heap->view.budget += heap->twin.budget;
    heap->twin.budget = 0;
    freeze_undo(heap);
    lock_drop(&heap->lock);
}
