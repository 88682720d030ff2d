/* A thief comes while the owner's heap is closed, or opened again, by a signal handler that interrupted a hot function
 * (heap/interrupt.c). The handler runs where it is called here: between two operations. */
#include "heap/freeze.h"
#include "heap/interrupt.h"
#include "heap/view.h"
#include "invariants.h"
#include "scheduler.h"

static void *blocks[8];
static struct heap *owner;

static void have_full_magazine(void)
{
    for (int i = 0; i < 3; i++)
        blocks[i] = block_take();
    block_free(blocks[0]);
    block_free(blocks[1]);
    owner = view_load()->heap;
    interrupt_end(interrupt_begin((uintptr_t)__builtin_frame_address(0), (struct handler_stack){0})); /* sets the twin up */
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

static void idle_handler(void)
{
    struct interruption interruption = interrupt_begin((uintptr_t)__builtin_frame_address(0), (struct handler_stack){0});
    interrupt_end(interruption);
    blocks[3] = block_take();
    blocks[4] = block_take();
}

static void busy_handler(void)
{
    struct interruption interruption = interrupt_begin((uintptr_t)__builtin_frame_address(0), (struct handler_stack){0});
    blocks[3] = block_take();
    block_free(blocks[2]);
    interrupt_end(interruption);
    blocks[4] = block_take();
}

const struct protocol_scenario scenarios[] = {
    {"interrupt idle", 0, 2, {have_full_magazine, start}, {idle_handler, steal}, {0}},
    {"interrupt busy", 0, 2, {have_full_magazine, start}, {busy_handler, steal}, {0}},
    {0},
};
