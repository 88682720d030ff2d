/* Threads that end and begin, and what becomes of their heaps (heap/life.c): lending, adoption of slabs with new tags,
 * cleaning, letters to a heap that has lost the block's slab. */
#include "heap/entry.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/start.h"
#include "heap/view.h"
#include "invariants.h"
#include "scheduler.h"
#include "world.h"

static void *blocks[16];
static struct heap *ended;

static void have_blocks(void)
{
    for (int i = 0; i < 3; i++)
        blocks[i] = block_take();
}

/* Its heap is idle, its slab has live blocks and room. */
static void have_blocks_and_end(void)
{
    have_blocks();
    ended = view_load()->heap;
    world_end_thread();
}

static void start(void)
{
    (void)start_thread();
}

static void end(void)
{
    world_end_thread();
}

static void free_and_end(void)
{
    block_free(blocks[2]);
    world_end_thread();
}

static void nothing(void)
{
}

static void in_door(void (*action)(struct heap *heap))
{
    struct heap *heap = view_load()->heap;
    entry_enter(heap, view_load());
    action(heap);
    entry_leave(heap);
}

static void clean(struct heap *heap)
{
    (void)heap;
    life_clean_all();
}

static void clean_ended(struct heap *heap)
{
    (void)heap;
    life_clean(ended);
}

static void adopt_first(void)
{
    blocks[4] = block_take();
}

static void adopt_second(void)
{
    blocks[5] = block_take();
}

static void send(void)
{
    block_free(blocks[0]);
    in_door(mail_post_all);
}

static void send_and_clean(void)
{
    send();
    in_door(clean);
}

static void send_and_clean_ended(void)
{
    send();
    in_door(clean_ended);
}

static void be_born(void)
{
    blocks[6] = block_take();
}

static void clean_idle(void)
{
    in_door(clean);
}

static void clean_one_ended(void)
{
    in_door(clean_ended);
}

static void tidy(void)
{
    if (view_load()->heap != NULL)
        in_door(mail_post_all);
}

const struct protocol_scenario scenarios[] = {
    {"adopt two takers", 0, 3, {start, start, have_blocks_and_end}, {adopt_first, adopt_second, nothing}, {0}},
    {"adopt while letters come", 0, 3, {start, start, have_blocks_and_end}, {adopt_first, send, nothing}, {tidy, tidy}},
    {"adopt while cleaned", 0, 3, {start, start, have_blocks_and_end}, {adopt_first, send_and_clean, nothing}, {tidy, tidy}},
    {"end while letters come", 0, 2, {have_blocks, start}, {free_and_end, send}, {0}},
    {"end and adopt", 0, 2, {have_blocks, start}, {end, adopt_first}, {0}},
    {"end and be born", 0, 2, {have_blocks, NULL}, {end, be_born}, {0}},
    {"two are born", 0, 3, {have_blocks_and_end, NULL, NULL}, {nothing, be_born, adopt_first}, {0}},
    {"two are lent heaps", 0, 3, {have_blocks_and_end, NULL, NULL}, {nothing, start, start}, {0}},
    {"lend while cleaned", 0, 3, {start, have_blocks_and_end, NULL}, {clean_idle, nothing, be_born}, {0}},
    {"lend while a sender cleans", 0, 3, {start, have_blocks_and_end, NULL}, {send_and_clean_ended, nothing, be_born}, {tidy}},
    {"two senders clean", 0, 3, {start, start, have_blocks_and_end}, {send_and_clean_ended, clean_one_ended, nothing}, {tidy}},
    {0},
};
