/* The scheduler's own tests: what x86 forbids is not found, and orders are counted right. */
#include "base/atomic.h"
#include "os/os.h"
#include "scheduler.h"

static uint64_t x;
static uint64_t y;
static uint64_t saw[2];

static void count(void)
{
    add_relaxed(&x, 1u);
}

static void count_twice(void)
{
    add_relaxed(&x, 1u);
    add_relaxed(&x, 1u);
}

static void three_counted(void)
{
    if (x != 3)
        sched_violation("an atomic addition was lost");
}

static void four_counted(void)
{
    if (x != 4)
        sched_violation("an atomic addition was lost");
}

/* Both store, then both load: with a fence between, one sees the other. */
static void store_x_fence_load_y(void)
{
    (void)exchange_acquire(&x, 1u);
    saw[0] = load_relaxed(&y);
}

static void store_y_fence_load_x(void)
{
    (void)exchange_acquire(&y, 1u);
    saw[1] = load_relaxed(&x);
}

static void store_x_load_y(void)
{
    store_relaxed(&x, 1u);
    compiler_fence();
    saw[0] = load_relaxed(&y);
}

static void store_y_membarrier_load_x(void)
{
    store_relaxed(&y, 1u);
    (void)os_barrier();
    saw[1] = load_relaxed(&x);
}

static void one_saw(void)
{
    if (saw[0] == 0 && saw[1] == 0)
        sched_violation("neither saw the other");
}

/* Stores become visible in order. */
static void store_x_store_y(void)
{
    store_relaxed(&x, 1u);
    store_relaxed(&y, 1u);
}

static void load_y_load_x(void)
{
    saw[0] = load_relaxed(&y);
    saw[1] = load_relaxed(&x);
}

static void in_order(void)
{
    if (saw[0] == 1 && saw[1] == 0)
        sched_violation("the second store was seen before the first");
}

/* A thread sees its own stores. */
static void store_load_x(void)
{
    store_relaxed(&x, 1u);
    if (load_relaxed(&x) == 0 || x == 0)
        sched_violation("a thread does not see its own store");
}

static void load_x(void)
{
    saw[0] = load_relaxed(&x);
}

const struct protocol_scenario scenarios[] = {
    {"litmus 1+1+1 additions", 6, 3, {0}, {count, count, count}, {three_counted}},
    {"litmus 2+2 additions", 6, 2, {0}, {count_twice, count_twice}, {four_counted}},
    {"litmus fences", 3, 2, {0}, {store_x_fence_load_y, store_y_fence_load_x}, {one_saw}},
    {"litmus membarrier", 0, 2, {0}, {store_x_load_y, store_y_membarrier_load_x}, {one_saw}},
    {"litmus message", 3, 2, {0}, {store_x_store_y, load_y_load_x}, {in_order}},
    {"litmus own store", 2, 2, {0}, {store_load_x, load_x}, {0}},
    {0},
};
