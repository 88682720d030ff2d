/* The scheduler's own tests: each of these must be found. */
#include "base/atomic.h"
#include "base/lock.h"
#include "scheduler.h"

static uint64_t x;
static uint64_t y;
static uint64_t saw[2];
static struct lock first = LOCK_INITIALIZER(LOCK_META);
static struct lock second = LOCK_INITIALIZER(LOCK_META);

static void count(void)
{
    store_relaxed(&x, load_relaxed(&x) + 1);
}

static void both_counted(void)
{
    if (x != 2)
        sched_violation("an addition was lost");
}

static void count_plainly(void)
{
    x++;
}

/* Each processor may keep its store to itself for a while. */
static void store_x_load_y(void)
{
    store_relaxed(&x, 1u);
    compiler_fence();
    saw[0] = load_relaxed(&y);
}

static void store_y_load_x(void)
{
    store_relaxed(&y, 1u);
    compiler_fence();
    saw[1] = load_relaxed(&x);
}

static void one_saw(void)
{
    if (saw[0] == 0 && saw[1] == 0)
        sched_violation("neither saw the other");
}

/* The own store is seen meanwhile. */
static void store_x_load_both(void)
{
    store_relaxed(&x, 1u);
    if (load_relaxed(&x) == 1)
        saw[0] = load_relaxed(&y);
}

static void store_y_load_both(void)
{
    store_relaxed(&y, 1u);
    if (load_relaxed(&y) == 1)
        saw[1] = load_relaxed(&x);
}

/* In no one order of all stores and loads does the first store come last. */
static void store_y_store_x(void)
{
    store_relaxed(&y, 1u);
    store_relaxed(&x, 2u);
}

static void not_the_last(void)
{
    if (saw[0] == 0 && x == 1)
        sched_violation("who did not see y has stored x last");
}

static void one_way(void)
{
    lock_take_sibling(&first);
    lock_take_sibling(&second);
    lock_drop(&second);
    lock_drop(&first);
}

static void other_way(void)
{
    lock_take_sibling(&second);
    lock_take_sibling(&first);
    lock_drop(&first);
    lock_drop(&second);
}

const struct protocol_scenario scenarios[] = {
    {"weak addition", 0, 2, {0}, {count, count}, {both_counted}},
    {"weak plain addition", 0, 2, {0}, {count_plainly, count_plainly}, {both_counted}},
    {"weak store buffers", 0, 2, {0}, {store_x_load_y, store_y_load_x}, {one_saw}},
    {"weak store buffers, own store", 0, 2, {0}, {store_x_load_both, store_y_load_both}, {one_saw}},
    {"weak last store", 0, 2, {0}, {store_x_load_both, store_y_store_x}, {not_the_last}},
    {"weak deadlock", 0, 2, {0}, {one_way, other_way}, {0}},
    {0},
};
