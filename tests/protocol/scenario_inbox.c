/* Remote frees (heap/mail.c): letters posted by two senders while the receiver takes them, and posted for a frozen
 * sender by its thief. */
#include "heap/entry.h"
#include "heap/freeze.h"
#include "heap/mail.h"
#include "heap/view.h"
#include "invariants.h"
#include "scheduler.h"

static void *blocks[8];
static struct heap *sender;

static void have_blocks(void)
{
    for (int i = 0; i < 5; i++)
        blocks[i] = block_take();
}

static void start(void)
{
    block_free(block_take());
    sender = view_load()->heap;
}

static void start_thief(void)
{
    block_free(block_take());
}

static void post(void)
{
    struct heap *heap = view_load()->heap;
    entry_enter(heap, view_load());
    mail_post_all(heap);
    entry_leave(heap);
}

static void send_first(void)
{
    block_free(blocks[0]);
    post();
}

static void send_second(void)
{
    block_free(blocks[1]);
    post();
}

static void collect(void)
{
    struct heap *heap = view_load()->heap;
    entry_enter(heap, view_load());
    mail_collect(heap, true);
    entry_leave(heap);
}

static void send_two_letters(void)
{
    block_free(blocks[0]);
    post();
    block_free(blocks[1]);
    post();
}

/* The second is a word in a letter that stays open. */
static void send_two_blocks(void)
{
    block_free(blocks[0]);
    block_free(blocks[1]);
}

/* The third makes more bytes than outboxes may hold. */
static void send_three(void)
{
    block_free(blocks[0]);
    block_free(blocks[1]);
    block_free(blocks[2]);
}

static void collect_twice(void)
{
    collect();
    collect();
}

static void take(void)
{
    blocks[6] = block_take();
}

/* Takes the sender's outbox. */
static void steal(void)
{
    if (!freeze_begin(sender))
        return;
    freeze_empty(sender);
    freeze_end(sender);
}

const struct protocol_scenario scenarios[] = {
    {"inbox two senders", 0, 3, {have_blocks, start, start}, {collect, send_first, send_second}, {collect}},
    {"inbox two letters", 0, 2, {have_blocks, start}, {collect_twice, send_two_letters}, {collect}},
    {"outbox full", 0, 2, {have_blocks, start}, {take, send_three}, {collect}},
    {"outbox stolen", 0, 3, {have_blocks, start, start_thief}, {collect, send_two_letters, steal}, {collect}},
    {"open letter stolen", 0, 2, {have_blocks, start}, {steal, send_two_blocks}, {collect}},
    {0},
};
