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
    {"weak deadlock", 0, 2, {0}, {one_way, other_way}, {0}},
    {0},
};
