#include "heap/freeze.h"

#include "base/atomic.h"
#include "base/fail.h"
#include "heap/budget.h"
#include "heap/entry.h"
#include "heap/interrupt.h"
#include "heap/keeper.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heap/view.h"
#include "os/os.h"

/* The end of a signal handler may show the owner its view for an instant (interrupt.c), and the look at the twin and
 * that at the view may both miss it. So often does not happen. */
enum { LOOKS_MOST = 8 };

/* The twin's budget is 0, so that malloc comes to the door before it looks at a magazine. Thief and owner may both be
 * here at once: they write the same. */
static FRAGILE void set_up_twin(struct heap *heap)
{
    if (load_acquire(&heap->twin.heap) == heap)
        return;
    view_close(&heap->twin);
    store_relaxed(&heap->twin.kind, VIEW_TWIN);
    store_release(&heap->twin.heap, heap);
}

FRAGILE void freeze_show_twin(struct heap *heap)
{
    set_up_twin(heap);
    store_release(&thread_view, &heap->twin);
}

FRAGILE struct view *freeze_view(struct heap *heap)
{
    return keeper_now() != NULL ? &heap->twin : &heap->view;
}

static uint32_t low_half(const struct view *view)
{
    return (uint32_t)(uintptr_t)view;
}

bool freeze_is_closed(const struct heap *heap)
{
    return os_holds(heap->tls, low_half(&heap->twin));
}

/* The owner's word lies in its thread's memory. A thread that told us of its end has taken its word back; but one that
 * first allocated in the last round of its destructors, or in a signal handler after it, ends without a word, and its
 * stack may be unmapped, or another thread's, at any time. So the kernel looks whether the word is still ours, and the
 * kernel writes it, which fails where a store of our own would fault. */
static bool show_twin_to_owner(struct heap *heap)
{
    set_up_twin(heap);
    view_prepare_doubles();
    for (int looks = 0; looks < LOOKS_MOST; looks++)
        if (os_set_bit((uintptr_t *)(void *)heap->tls, low_half(&heap->view), TWIN_BIT) || freeze_is_closed(heap))
            return true;
    return false;
}

bool freeze_close(struct heap *heap)
{
    if (load_relaxed(&heap->frozen) == FREEZE_NONE)
        store_relaxed(&heap->frozen, (uint32_t)FREEZE_CLOSED);
    return show_twin_to_owner(heap);
}

bool freeze_begin(struct heap *heap)
{
    os_prepare_barrier();
    lock_take(&heap->lock);
    if (heap->tls != NULL && freeze_close(heap)) {
        if (os_barrier() && load_acquire(&heap->in_door) == 0) {
            store_relaxed(&heap->frozen, (uint32_t)FREEZE_HOLES);
            return true;
        }
    }
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
    struct shelf *shelf = &heap->shelf[class];
    void **slots = shelf->slots;
    if (slots == NULL)
        return 0;
    size_t taken = 0;
    void **top = load_after_barrier(&heap->view.top[class]);
    ASSERT(top != closed_magazine); /* its owner would be in the door */
    for (void **slot = slots + 1; slot < top; slot++) {
        void *p = load_relaxed(slot);
        if (p == NULL)
            continue;
        if (!magazine_give_back(heap, class, p))
            continue;
        store_relaxed(slot, NULL);
        taken++;
    }
    if (taken != 0)
        store_relaxed(&shelf->holes, (uint16_t)(shelf->holes + taken));
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

/* Others have emptied the heap, which the owner still uses: the next time they wait longer (mail_state). */
static void note_awake(struct heap *heap)
{
    heap->believed_asleep = false;
    if (heap->woken < WOKEN_MOST)
        store_relaxed(&heap->woken, heap->woken + 1);
}

static void reopen(struct heap *heap)
{
    if (heap->believed_asleep)
        note_awake(heap);
    if (load_relaxed(&heap->frozen) == FREEZE_HOLES)
        magazine_compact(heap);
    if (keeper_now() != NULL)
        magazine_flush_all(heap);
    budget_charge_view(heap);
    store_relaxed(&heap->frozen, (uint32_t)FREEZE_NONE);
    store_release(&thread_view, freeze_view(heap));
}

void freeze_reopen(struct heap *heap)
{
    if (keeper_now() != NULL && load_relaxed(&heap->frozen) == FREEZE_NONE) {
        if (!interrupt_lasts(heap))
            budget_charge_view(heap);
        return;
    }
    entry_take(heap, &heap->lock);
    if (!interrupt_lasts(heap))
        reopen(heap);
    lock_drop(&heap->lock);
}
