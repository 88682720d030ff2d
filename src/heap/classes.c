#include "heap/classes.h"

#include "base/fail.h"
#include "heap/delay.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heap/shelf.h"

uint64_t classes_defined;
uint64_t classes_draining;
uint32_t classes_undone;

static uint64_t bit_of(unsigned id)
{
    return (uint64_t)1 << id;
}

/* Before any load that follows. */
static void set_defined(uint64_t ids)
{
    (void)__atomic_exchange_n(&classes_defined, ids, __ATOMIC_SEQ_CST);
}

static bool is_left(unsigned id)
{
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        if (__atomic_load_n(&heap->counts->slabs[id], __ATOMIC_SEQ_CST) != 0
            || __atomic_load_n(&heap->shelf[id].borrows, __ATOMIC_SEQ_CST) != 0)
            return true;
    return false;
}

/* Who makes a slab of it meanwhile sees that, and goes by the table again, in which it is not. */
static void undefine_unless_left(unsigned id)
{
    store_relaxed(&classes_undone, classes_undone + 1);
    set_defined(classes_defined & ~bit_of(id));
    if (is_left(id))
        set_defined(classes_defined | bit_of(id));
    else
        store_relaxed(&classes_draining, classes_draining & ~bit_of(id));
}

static void reclaim_all_locked(void)
{
    for (uint64_t left = classes_draining; left != 0; left &= left - 1)
        undefine_unless_left((unsigned)__builtin_ctzll(left));
}

void classes_reclaim_one(void)
{
    static unsigned last;
    if (load_relaxed(&classes_draining) == 0)
        return;
    lock_take(&life_lock);
    uint64_t above = classes_draining & ~(bit_of(last) | (bit_of(last) - 1));
    uint64_t next = above != 0 ? above : classes_draining;
    if (next != 0) {
        last = (unsigned)__builtin_ctzll(next);
        undefine_unless_left(last);
    }
    lock_drop(&life_lock);
}

/* One that is closed, and of this size. */
static unsigned closed_of(size_t size)
{
    for (uint64_t left = classes_draining; left != 0; left &= left - 1) {
        unsigned id = (unsigned)__builtin_ctzll(left);
        if (size_classes[id].size == size)
            return id;
    }
    return SIZE_CLASSES;
}

static unsigned define_new(size_t size)
{
    for (unsigned id = SIZE_CLASSES_FIXED; id < SIZE_CLASSES; id++) {
        if ((classes_defined & bit_of(id)) != 0)
            continue;
        size_class_define(id, size);
        set_defined(classes_defined | bit_of(id));
        return id;
    }
    return SIZE_CLASSES;
}

static unsigned open_locked(size_t size)
{
    if (!size_class_may_be_made(size) || size_classes[size_class_of(size)].size == size)
        return SIZE_CLASSES;
    unsigned id = closed_of(size);
    if (id == SIZE_CLASSES)
        id = define_new(size);
    if (id == SIZE_CLASSES) {
        reclaim_all_locked();
        id = define_new(size);
    }
    if (id == SIZE_CLASSES)
        return SIZE_CLASSES;
    store_relaxed(&classes_draining, classes_draining & ~bit_of(id));
    size_class_show(id);
    return id;
}

unsigned classes_open(size_t size)
{
    lock_take(&life_lock);
    unsigned id = open_locked(size);
    lock_drop(&life_lock);
    return id;
}

void classes_close(unsigned id)
{
    lock_take(&life_lock);
    ASSERT((classes_defined & ~classes_draining & bit_of(id)) != 0);
    size_class_hide(id);
    store_relaxed(&classes_draining, classes_draining | bit_of(id));
    lock_drop(&life_lock);
}

void classes_leave_closed(struct heap *heap)
{
    for (uint64_t left = load_relaxed(&classes_draining); left != 0; left &= left - 1) {
        unsigned id = (unsigned)__builtin_ctzll(left);
        magazine_flush(heap, id, SIZE_MAX);
        if (HARDENED)
            delay_empty_class(heap, id);
        shelf_leave(heap, id);
    }
}
