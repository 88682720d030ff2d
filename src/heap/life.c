#include "heap/life.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "base/thread.h"
#include "heap/budget.h"
#include "heap/delay.h"
#include "heap/entry.h"
#include "heap/freeze.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heap/view.h"
#include "os/os.h"

enum { ADOPT_LOOKS_AT = 8 };

struct lock life_lock = LOCK_INITIALIZER(LOCK_LIFE);

struct heap *life_newest; /* only ever grows */
static uint32_t heaps;

/* Idle heaps; the life lock guards both lists. A warm one is as its thread left it, and the last to come is the
 * first to be lent again. Clean ones have nothing cached, and wait in turn for mail to be collected. */
static struct list warm;
static struct list clean;
static uint32_t idle_count;

static void idle_add_locked(struct list *list, struct heap *heap)
{
    heap->idle_in = list;
    store_relaxed(&idle_count, idle_count + 1);
    store_release(&heap->in_door, 0u);
}

static void idle_push_locked(struct list *list, struct heap *heap)
{
    if (list == &clean)
        list_push_back(list, &heap->idle);
    else
        list_push_front(list, &heap->idle);
    idle_add_locked(list, heap);
}

static struct heap *idle_take_locked(struct list_node *node)
{
    if (node == NULL)
        return NULL;
    struct heap *heap = LIST_ENTRY(node, struct heap, idle);
    list_remove(heap->idle_in, node);
    heap->idle_in = NULL;
    store_relaxed(&idle_count, idle_count - 1);
    store_relaxed(&heap->in_door, 1u);
    return heap;
}

/* For who brings it back, or has it from then on. Until then it is changed under its lock, or that of the heap whose slabs go there: a fork
 * waits for either. */
static struct heap *borrow_locked(struct list_node *node)
{
    struct heap *heap = idle_take_locked(node);
    if (heap != NULL)
        heap->borrower = thread_self();
    return heap;
}

/* For a new thread a warm one, if there is any. Who has no thread gets one that has nothing, or none: of what it had cached, or could
 * lend, nobody would hear. */
static struct list_node *lendable(bool to_thread)
{
    struct list_node *first = clean.first;
    if (to_thread)
        return warm.first != NULL ? warm.first : first;
    return first != NULL && LIST_ENTRY(first, struct heap, idle)->units == 0 ? first : NULL;
}

static struct heap *idle_lend(bool to_thread)
{
    if (load_relaxed(&idle_count) == 0)
        return NULL;
    lock_take(&life_lock);
    struct heap *heap = borrow_locked(lendable(to_thread));
    lock_drop(&life_lock);
    return heap;
}

void life_idle_locked(struct heap *heap)
{
    idle_push_locked(&warm, heap);
}

static struct heap *create(void)
{
    struct heap *heap = meta_alloc_aligned(sizeof *heap + DELAY_BYTES, HEAP_ALIGN);
    if (heap == NULL)
        return NULL;
    heap->counts = meta_alloc(sizeof *heap->counts);
    if (heap->counts == NULL)
        return NULL; /* the heap is lost: pieces so large are not kept (meta.h) */
    if (HARDENED)
        delay_start(heap);
    view_close(&heap->view);
    heap->view.heap = heap;
    heap->view.kind = VIEW_HEAP;
    heap->lock.rank = LOCK_HEAP;
    heap->in_door = 1;
    lock_take(&life_lock);
    heap->number = heaps++;
    heap->next = life_newest;
    store_release(&life_newest, heap);
    lock_drop(&life_lock);
    budget_begin(heap);
    return heap;
}

size_t life_count(void)
{
    const struct heap *newest = life_heaps();
    uint32_t all = newest != NULL ? newest->number + 1 : 0;
    uint32_t idle = load_relaxed(&idle_count);
    return all > idle ? all - idle : 0;
}

struct heap *life_birth(struct view **tls)
{
    struct heap *heap = idle_lend(tls != NULL);
    if (heap == NULL)
        heap = create();
    if (heap == NULL)
        return NULL;
    lock_take(&heap->lock);
    store_relaxed(&heap->tls, tls);
    store_relaxed(&heap->woken, 0u);
    heap->believed_asleep = false;
    heap->borrower = 0;
    if (tls != NULL) {
        heap->thread = os_thread();
        store_release(tls, &heap->view);
    }
    store_release(&heap->in_door, (uint32_t)DOOR_WAITS); /* of a fork that comes now, nothing is half done */
    lock_drop(&heap->lock);
    store_release(&heap->in_door, 0u);
    return heap;
}

void life_empty(struct heap *heap)
{
    mail_collect(heap, false);
    magazine_flush_all(heap);
    mail_post_all(heap);
    shelf_release_empty(heap);
    stock_trim(heap);
}

void life_retire(struct heap *heap)
{
    mail_post_all(heap);
    /* One warm heap waits for the next thread; when one does already, this one lends nothing. */
    entry_take(heap, &life_lock);
    bool cleaned = warm.first != NULL;
    lock_drop(&life_lock);
    if (cleaned)
        life_empty(heap);
    /* Both locks: at no time, which a fork might choose, is the heap nobody's and not idle. */
    entry_take(heap, &life_lock);
    lock_take(&heap->lock);
    if (heap->tls != NULL)
        store_release(heap->tls, STATIC_VIEW(dead));
    store_relaxed(&heap->tls, NULL);
    store_relaxed(&heap->frozen, (uint32_t)FREEZE_NONE);
    lock_drop(&heap->lock);
    idle_push_locked(cleaned ? &clean : &warm, heap);
    lock_drop(&life_lock);
}

static void quarantine_locked(struct heap *heap)
{
    store_relaxed(&heap->tls, NULL);
    heap->quarantined = true;
}

void life_quarantine(struct heap *heap)
{
    if (!lock_is_mine(&heap->lock))
        lock_take(&heap->lock);
    if (heap->tls != NULL)
        store_release(heap->tls, STATIC_VIEW(dead));
    quarantine_locked(heap);
    lock_drop(&heap->lock);
}

bool life_reclaim_locked(struct heap *heap)
{
    if (heap->tls == NULL || !os_thread_is_gone(heap->thread))
        return false;
    if (load_relaxed(&heap->in_door) != 0) {
        quarantine_locked(heap);
        return false;
    }
    heap->interrupt.depth = 0;
    if (load_relaxed(&heap->frozen) == FREEZE_HOLES)
        magazine_compact(heap);
    store_relaxed(&heap->frozen, (uint32_t)FREEZE_NONE);
    store_relaxed(&heap->tls, NULL);
    life_idle_locked(heap);
    return true;
}

bool life_reclaim(struct heap *heap)
{
    lock_take(&life_lock);
    lock_take(&heap->lock);
    bool reclaimed = life_reclaim_locked(heap);
    lock_drop(&heap->lock);
    lock_drop(&life_lock);
    return reclaimed;
}

static struct slab *part_of_idle(const struct list *list, unsigned class, uint32_t looks)
{
    struct list_node *node = list->first;
    for (uint32_t i = 0; i < looks && node != NULL; i++, node = node->next) {
        struct slab *slab = shelf_part_with(LIST_ENTRY(node, struct heap, idle), class);
        if (slab != NULL)
            return slab;
    }
    return NULL;
}

static bool adopt(struct heap *heap, unsigned class, uint32_t looks)
{
    lock_take(&life_lock);
    struct slab *slab = part_of_idle(&clean, class, looks);
    if (slab == NULL)
        slab = part_of_idle(&warm, class, looks);
    if (slab != NULL)
        shelf_adopt(heap, slab);
    lock_drop(&life_lock);
    return slab != NULL;
}

bool life_adopt(struct heap *heap, unsigned class)
{
    if (load_relaxed(&idle_count) == 0 || lock_is_taken(&life_lock))
        return false;
    return adopt(heap, class, ADOPT_LOOKS_AT);
}

COLD bool life_adopt_any(struct heap *heap, unsigned class)
{
    return adopt(heap, class, UINT32_MAX);
}

static void bring_back_locked(struct list *list, struct heap *heap)
{
    heap->borrower = 0;
    idle_push_locked(list, heap);
}

void life_inherit_locked(struct heap *heap)
{
    if (heap->borrower != 0 && heap->borrower != thread_self())
        bring_back_locked(&warm, heap);
}

/* The heap that waits longest of those to clean: a warm one, or a clean one with mail, of which one is looked
 * at each time. */
static struct heap *idle_take_to_clean(void)
{
    struct heap *heap = NULL;
    lock_take(&life_lock);
    if (warm.last != NULL) {
        heap = borrow_locked(warm.last);
    } else if (clean.first != NULL) {
        heap = borrow_locked(clean.first);
        if (!mail_waits(heap)) {
            bring_back_locked(&clean, heap);
            heap = NULL;
        }
    }
    lock_drop(&life_lock);
    return heap;
}

/* A borrowed heap. With `holes` those of its slabs are given back, too, as far as a fork lets it. Returns their bytes. */
static size_t clean_and_return(struct heap *heap, bool holes)
{
    lock_take(&heap->lock);
    life_empty(heap);
    size_t bytes = holes ? shelf_purge_all(heap) : 0;
    lock_drop(&heap->lock);
    lock_take(&life_lock);
    bring_back_locked(&clean, heap);
    lock_drop(&life_lock);
    return bytes;
}

void life_clean_one(void)
{
    if (load_relaxed(&idle_count) == 0)
        return;
    struct heap *heap = idle_take_to_clean();
    if (heap != NULL)
        (void)clean_and_return(heap, false);
}

/* A fork may come before it is marked: then the child does not have it, which is empty. */
static struct heap *borrow_new(void)
{
    struct heap *heap = create();
    if (heap == NULL)
        return NULL;
    lock_take(&life_lock);
    heap->borrower = thread_self();
    lock_drop(&life_lock);
    return heap;
}

struct heap *life_borrow(void)
{
    struct heap *heap = NULL;
    if (load_relaxed(&idle_count) > 0) {
        lock_take(&life_lock);
        heap = borrow_locked(clean.first);
        lock_drop(&life_lock);
    }
    return heap != NULL ? heap : borrow_new();
}

void life_return(struct heap *heap)
{
    lock_take(&life_lock);
    heap->borrower = 0;
    list_push_front(&clean, &heap->idle);
    idle_add_locked(&clean, heap);
    lock_drop(&life_lock);
}

/* Takes this heap from the idle ones. */
static bool idle_take(struct heap *heap)
{
    lock_take(&life_lock);
    bool idle = heap->idle_in != NULL;
    if (idle)
        borrow_locked(&heap->idle);
    lock_drop(&life_lock);
    return idle;
}

void life_clean(struct heap *heap)
{
    if (idle_take(heap))
        (void)clean_and_return(heap, false);
}

size_t life_purge(struct heap *heap)
{
    return idle_take(heap) ? clean_and_return(heap, true) : 0;
}

void life_clean_all(void)
{
    for (uint32_t left = load_relaxed(&idle_count); left > 0; left--)
        life_clean_one();
}

struct heap *life_heaps(void)
{
    return load_acquire(&life_newest);
}
