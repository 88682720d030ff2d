/* Freezing a heap from outside (heap/freeze.c, heap/entry.h) while its owner is anywhere in hot_malloc, hot_free or
 * its door. */
#include "heap/freeze.h"
#include "heap/shelf.h"
#include "heap/view.h"
#include "invariants.h"
#include "scheduler.h"

static void *blocks[8];
static struct heap *owner;

static void have(int count)
{
    for (int i = 0; i < count; i++)
        blocks[i] = block_take();
    owner = view_load()->heap;
}

/* Two blocks in the magazine, one live. */
static void have_full_magazine(void)
{
    have(3);
    block_free(blocks[0]);
    block_free(blocks[1]);
}

/* One in the magazine, two live. */
static void have_half_magazine(void)
{
    have(3);
    block_free(blocks[0]);
}

static void start(void)
{
    block_free(block_take());
}

static void steal(void)
{
    if (!freeze_begin(owner))
        return;
    freeze_empty(owner);
    freeze_end(owner);
}

static void steal_twice(void)
{
    steal();
    steal();
}

/* As the purger. */
static void purge(void)
{
    if (!freeze_begin(owner))
        return;
    freeze_empty(owner);
    (void)shelf_purge_all(owner);
    freeze_end(owner);
}

static void pop(void)
{
    blocks[3] = block_take();
}

static void pop_twice(void)
{
    blocks[3] = block_take();
    blocks[4] = block_take();
}

static void push(void)
{
    block_free(blocks[2]);
}

static void push_pop(void)
{
    block_free(blocks[2]);
    blocks[3] = block_take();
}

const struct protocol_scenario scenarios[] = {
    {"freeze pop", 0, 2, {have_full_magazine, start}, {pop, steal}, {0}},
    {"freeze push", 0, 2, {have_half_magazine, start}, {push, steal}, {0}},
    {"freeze full push", 0, 2, {have_full_magazine, start}, {push, steal}, {0}},
    {"freeze pop pop", 0, 2, {have_full_magazine, start}, {pop_twice, steal}, {0}},
    {"freeze push pop", 0, 2, {have_half_magazine, start}, {push_pop, steal}, {0}},
    {"freeze twice pop pop", 0, 2, {have_full_magazine, start}, {pop_twice, steal_twice}, {0}},
    {"freeze purge pop pop", 0, 2, {have_full_magazine, start}, {pop_twice, purge}, {0}},
    {"freeze purge push pop", 0, 2, {have_half_magazine, start}, {push_pop, purge}, {0}},
    {0},
};
