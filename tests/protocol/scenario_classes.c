/* Size classes that become others (heap/classes.h): while a thread comes for a block of the old one, or gives its last slab
 * back; while a slab of it is adopted. */
#include "config/policy.h"
#include "heap/classes.h"
#include "heap/entry.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heap/view.h"
#include "invariants.h"
#include "scheduler.h"
#include "world.h"

enum { LARGER = 28688, SMALLER = 20496, LENDER = 20480, LENT = 17424, OTHER = 16384 };

static void *blocks[4];
static unsigned id;

/* With memory to make slabs of. */
static void start(void)
{
    block_free(block_take_of(OTHER));
}

static void start_and_open(void)
{
    start();
    id = classes_open(LARGER);
}

/* Free, in the magazine and its slab. */
static void have_had_one(void)
{
    start();
    block_free(block_take_of(LARGER));
}

static void have_one_and_end(void)
{
    start();
    blocks[3] = block_take_of(LARGER);
    world_end_thread();
}

static void take_larger(void)
{
    blocks[0] = block_take_of(LARGER);
}

/* Makes the id a smaller class, if nothing is left of it, and has a block of that. */
static void become_smaller(void)
{
    classes_close(id);
    classes_reclaim_one();
    if ((classes_defined >> id & 1) != 0)
        return;
    if (classes_open(SMALLER) != id)
        sched_violation("another id is taken");
    blocks[1] = block_take_of(SMALLER);
}

static void close_and_reclaim(void)
{
    classes_close(id);
    classes_reclaim_one();
    if ((classes_defined >> id & 1) == 0)
        sched_violation("a class is undefined of which a slab is left");
}

/* As at its heartbeat. */
static void leave(void)
{
    struct heap *heap = view_load()->heap;
    entry_enter(heap, view_load());
    magazine_flush(heap, id, SIZE_MAX);
    shelf_leave(heap, id);
    entry_leave(heap);
}

/* Of a class whose magazine holds a block of the fixed one. */
static void start_and_borrow(void)
{
    start();
    id = classes_open(LENT);
    policy.batch_eighths[id] = 8;
    block_free(block_take_of(LENDER));
    blocks[2] = block_take_of(LENDER);
    blocks[0] = block_take_of(LENT);
}

static void take_twice(void)
{
    blocks[1] = block_take_of(LENT);
    blocks[3] = block_take_of(LARGER);
}

static void become_larger(void)
{
    classes_close(id);
    classes_reclaim_one();
    if ((classes_defined >> id & 1) == 0)
        (void)classes_open(LARGER);
}

static void nothing(void)
{
}

const struct protocol_scenario scenarios[] = {
    {"class becomes smaller", 0, 2, {start_and_open, start}, {take_larger, become_smaller}, {0}},
    {"class becomes smaller while its last slab goes", 0, 2, {start_and_open, have_had_one}, {become_smaller, leave}, {0}},
    {"class closed while adopted", 0, 3, {start_and_open, start, have_one_and_end},
     {take_larger, close_and_reclaim, nothing}, {0}},
    {"class becomes larger while it borrows", 0, 2, {start_and_borrow, start}, {take_twice, become_larger}, {0}},
    {0},
};
