#include "heap/life.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heap/view.h"

enum { HEAP_ALIGN = 128, ADOPT_LOOKS_AT = 8 };

struct lock life_lock = LOCK_INITIALIZER(LOCK_LIFE);

static struct heap *all;        /* newest first; only ever grows */
static struct heap *idle_first; /* the life lock guards the list */
static struct heap *idle_last;
static uint32_t idle_count;
static uint32_t heaps;

static struct heap *idle_pop_locked(void)
{
    struct heap *heap = idle_first;
    if (heap == NULL)
        return NULL;
    idle_first = heap->next_idle;
    if (idle_first == NULL)
        idle_last = NULL;
    store_relaxed(&idle_count, idle_count - 1);
    store_relaxed(&heap->in_door, 1u);
    return heap;
}

static struct heap *idle_pop(void)
{
    if (load_relaxed(&idle_count) == 0)
        return NULL;
    lock_take(&life_lock);
    struct heap *heap = idle_pop_locked();
    lock_drop(&life_lock);
    return heap;
}

void life_idle_locked(struct heap *heap)
{
    heap->next_idle = idle_first;
    idle_first = heap;
    if (idle_last == NULL)
        idle_last = heap;
    store_relaxed(&idle_count, idle_count + 1);
    store_release(&heap->in_door, 0u);
}

static void idle_push_last_locked(struct heap *heap)
{
    heap->next_idle = NULL;
    if (idle_last != NULL)
        idle_last->next_idle = heap;
    else
        idle_first = heap;
    idle_last = heap;
    store_relaxed(&idle_count, idle_count + 1);
    store_release(&heap->in_door, 0u);
}

static struct heap *create(void)
{
    struct heap *heap = meta_alloc_aligned(sizeof *heap, HEAP_ALIGN);
    if (heap == NULL)
        return NULL;
    view_close(&heap->view);
    heap->view.heap = heap;
    heap->view.kind = VIEW_HEAP;
    heap->lock.rank = LOCK_HEAP;
    heap->in_door = 1;
    lock_take(&life_lock);
    heap->number = heaps++;
    heap->next = all;
    store_release(&all, heap);
    lock_drop(&life_lock);
    return heap;
}

struct heap *life_birth(struct view **tls)
{
    struct heap *heap = idle_pop();
    if (heap == NULL)
        heap = create();
    if (heap == NULL)
        return NULL;
    lock_take(&heap->lock);
    heap->tls = tls;
    if (tls != NULL)
        store_release(tls, &heap->view);
    lock_drop(&heap->lock);
    store_release(&heap->in_door, 0u);
    return heap;
}

/* The caller holds the heap, or is its owner on the way out. */
static void clean(struct heap *heap)
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
    /* The heap that is warm waits for the next thread; when others wait already, this one lends nothing. */
    if (load_relaxed(&idle_count) > 0)
        clean(heap);
    lock_take(&heap->lock);
    store_release(heap->tls, &view_dead);
    heap->tls = NULL;
    store_relaxed(&heap->frozen, 0u);
    lock_drop(&heap->lock);
    lock_take(&life_lock);
    life_idle_locked(heap);
    lock_drop(&life_lock);
}

bool life_adopt(struct heap *heap, unsigned class)
{
    if (load_relaxed(&idle_count) == 0)
        return false;
    struct slab *slab = NULL;
    lock_take(&life_lock);
    struct heap *idle = idle_first;
    for (int i = 0; i < ADOPT_LOOKS_AT && idle != NULL && slab == NULL; i++, idle = idle->next_idle)
        slab = shelf_part_with(idle, class);
    if (slab != NULL)
        shelf_adopt(heap, slab);
    lock_drop(&life_lock);
    return slab != NULL;
}

static void clean_popped(struct heap *heap)
{
    clean(heap);
    lock_take(&life_lock);
    idle_push_last_locked(heap);
    lock_drop(&life_lock);
}

void life_clean_one(void)
{
    struct heap *heap = idle_pop();
    if (heap != NULL)
        clean_popped(heap);
}

void life_clean_all(void)
{
    for (uint32_t left = load_relaxed(&idle_count); left > 0; left--)
        life_clean_one();
}

struct heap *life_heaps(void)
{
    return load_acquire(&all);
}
