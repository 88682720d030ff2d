/* fork (heap/fork.c) while another thread is anywhere in an operation: the child, where that thread is gone in the
 * middle of it, and the parent, where it goes on. */
#include "heap/fork.h"
#include "heap/freeze.h"
#include "heap/view.h"
#include "invariants.h"
#include "scheduler.h"

static void *blocks[16];
static struct heap *other;

static void have_full_magazine(void)
{
    for (int i = 0; i < 4; i++)
        blocks[i] = block_take();
    block_free(blocks[0]);
    block_free(blocks[1]);
    other = view_load()->heap;
}

static void have_half_magazine(void)
{
    for (int i = 0; i < 4; i++)
        blocks[i] = block_take();
    block_free(blocks[0]);
    other = view_load()->heap;
}

static void start(void)
{
    block_free(block_take());
}

static void pop(void)
{
    blocks[4] = block_take();
}

static void push(void)
{
    block_free(blocks[2]);
}

/* The second goes through the door. */
static void push_push(void)
{
    block_free(blocks[2]);
    block_free(blocks[3]);
}

static void pop_pop_pop(void)
{
    blocks[4] = block_take();
    blocks[5] = block_take();
    blocks[6] = block_take();
}

static void fork_in_parent(void)
{
    fork_prepare();
    fork_parent();
    blocks[8] = block_take();
}

static void fork_in_child(void)
{
    fork_prepare();
    sched_step(OP_VANISH, &blocks, sizeof blocks, 0, __builtin_return_address(0));
    invariants_thread_gone();
    fork_child();
    for (int i = 8; i < 12; i++)
        blocks[i] = block_take();
    for (int i = 8; i < 12; i++)
        block_free(blocks[i]);
}

static void steal(void)
{
    if (!freeze_begin(other))
        return;
    freeze_empty(other);
    freeze_end(other);
}

const struct protocol_scenario scenarios[] = {
    {"fork parent pop", 0, 2, {have_full_magazine, start}, {pop, fork_in_parent}, {0}},
    {"fork parent push push", 0, 2, {have_half_magazine, start}, {push_push, fork_in_parent}, {0}},
    {"fork child pop", 0, 2, {have_full_magazine, start}, {pop, fork_in_child}, {0}, .vanishes = true},
    {"fork child push", 0, 2, {have_half_magazine, start}, {push, fork_in_child}, {0}, .vanishes = true},
    {"fork child pop pop pop", 0, 2, {have_full_magazine, start}, {pop_pop_pop, fork_in_child}, {0}, .vanishes = true},
    {"fork child push push", 0, 2, {have_half_magazine, start}, {push_push, fork_in_child}, {0}, .vanishes = true},
    {"fork child thief", 0, 3, {have_full_magazine, start, start}, {pop, fork_in_child, steal}, {0}, .vanishes = true, .partly = true},
    {0},
};
