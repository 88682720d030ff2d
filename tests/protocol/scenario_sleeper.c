/* Others free the blocks of a thread that sleeps, until who posts a letter reads the mail for it, and gives the room in its slabs to
 * an idle heap, from which others adopt it (heap/sleeper.c). The owner may wake up or end at any moment, blocks of these slabs may be
 * on their way, and others may want the same heaps. */
#include "heap/entry.h"
#include "heap/interrupt.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/sleeper.h"
#include "heap/start.h"
#include "heap/view.h"
#include "invariants.h"
#include "scheduler.h"
#include "world.h"

/* Of each of the owner's three slabs the last block is kept, the others may be sent. Four blocks are
 * more than may lie in the owner's inbox. */
enum { SLABS = 3, SLAB = 4, HAD = SLABS * SLAB, LETTER = 3 };

static void *blocks[HAD];
static void *more[4];
static struct heap *owner;

static void *sent(int i)
{
    return blocks[i % SLABS * SLAB + i / SLABS];
}

static void *kept(int slab)
{
    return blocks[slab * SLAB + SLAB - 1];
}

static void in_door(void (*action)(struct heap *heap))
{
    struct heap *heap = view_load()->heap;
    entry_enter(heap, view_load());
    action(heap);
    entry_leave(heap);
}

static void have_blocks(void)
{
    for (int i = 0; i < HAD; i++)
        blocks[i] = block_take();
    owner = view_load()->heap;
    interrupt_end(interrupt_begin((uintptr_t)__builtin_frame_address(0), (struct handler_stack){0})); /* sets the twin up */
}

static void have_half_magazine(void)
{
    have_blocks();
    block_free(kept(1));
}

static void have_full_magazine(void)
{
    have_half_magazine();
    block_free(kept(0));
}

static void start(void)
{
    (void)start_thread();
}

/* What is given away goes there; else a heap is made for it. Whoever starts takes an idle heap, so they are made last. */
static void make_idle_heaps(void)
{
    struct heap *first = life_borrow();
    life_return(life_borrow());
    life_return(first);
}

static void start_last(void)
{
    start();
    make_idle_heaps();
}

/* One of a letter, which will be one too many, is still to come. */
static void have_letter(void)
{
    start();
    block_free(sent(0));
    in_door(mail_post_all);
    for (int i = 1; i < LETTER; i++)
        block_free(sent(i));
}

static void have_letter_last(void)
{
    have_letter();
    make_idle_heaps();
}

static void send_letter(void)
{
    block_free(sent(LETTER));
}

static void send_and_take(void)
{
    send_letter();
    more[3] = block_take();
}

/* A block of a slab that may be given away just now, or be by the time its letter arrives. */
static void free_other(void)
{
    block_free(blocks[SLAB + 2]);
}

static void send_other(void)
{
    free_other();
    in_door(mail_post_all);
}

static void pop(void)
{
    more[0] = block_take();
}

/* The last one has the mail read, or finds room. */
static void pop_all(void)
{
    for (int i = 0; i < 3; i++)
        more[i] = block_take();
}

static void push(void)
{
    block_free(kept(2));
}

/* The first flushes, if the magazine is full, what may be of another's slab by then. */
static void push_twice(void)
{
    push();
    block_free(blocks[2 * SLAB + 2]);
}

static void push_pop(void)
{
    push();
    pop();
}

static void end(void)
{
    world_end_thread();
}

static void push_and_end(void)
{
    push();
    end();
}

static void take(void)
{
    more[3] = block_take();
}

/* Takers that come before the owner has ended are another scenario's: together these orders are too many. */
static void take_from_ended(void)
{
    if (load_relaxed(&owner->tls) == NULL)
        take();
}

static void look_at_owner(struct heap *heap)
{
    (void)heap;
    sleeper_collect(owner);
}

/* As at its heartbeat. */
static void look(void)
{
    in_door(look_at_owner);
}

static void empty(struct heap *heap)
{
    (void)heap;
    (void)sleeper_empty(owner);
}

/* As malloc_trim. */
static void trim(void)
{
    in_door(empty);
}

static void nothing(void)
{
}

static void collect(struct heap *heap)
{
    mail_post_all(heap);
    mail_collect(heap, false);
    life_clean_all();
}

/* What is done afterwards must not hide what is wrong by then. */
static void tidy(void)
{
    invariants_check();
    if (view_load()->heap != NULL)
        in_door(collect);
}

/* The owner goes on working with what it has, and what it finds. */
static void wake(void)
{
    void *p[HAD];
    tidy();
    for (int i = 0; i < HAD; i++)
        p[i] = block_take();
    for (int i = 0; i < HAD; i++)
        block_free(p[i]);
}

static void wake_emptied_once(void)
{
    if (owner->counts->of[COUNT_EMPTIED] != 1)
        sched_violation("two have emptied the heap");
    wake();
}

const struct protocol_scenario scenarios[] = {
    {"sleeper pops", 0, 2, {have_full_magazine, have_letter_last}, {pop, send_letter}, {wake, tidy}},
    {"sleeper pops all", 0, 2, {have_full_magazine, have_letter_last}, {pop_all, send_letter}, {wake, tidy}},
    {"sleeper pops all, no idle heap", 0, 2, {have_full_magazine, have_letter}, {pop_all, send_letter}, {wake, tidy}},
    {"sleeper pops all, sender pops", 0, 2, {have_full_magazine, have_letter_last}, {pop_all, send_and_take}, {wake, tidy}},
    {"sleeper pushes", 0, 2, {have_half_magazine, have_letter_last}, {push, send_letter}, {wake, tidy}},
    {"sleeper pushes twice", 0, 2, {have_full_magazine, have_letter_last}, {push_twice, send_letter}, {wake, tidy}},
    {"sleeper ends", 0, 2, {have_full_magazine, have_letter_last}, {end, send_letter}, {NULL, tidy}},
    {"sleeper pushes and ends", 0, 2, {have_full_magazine, have_letter_last}, {push_and_end, send_letter}, {NULL, tidy}},
    {"sleeper and look", 0, 3, {have_full_magazine, have_letter, start_last},
     {nothing, send_letter, look}, {wake_emptied_once, tidy, tidy}},
    {"sleeper and letter", 0, 3, {have_full_magazine, have_letter, start_last},
     {nothing, send_letter, send_other}, {wake, tidy, tidy}},
    {"sleeper pops, letter", 0, 3, {have_half_magazine, have_letter, start_last},
     {pop, send_letter, send_other}, {wake, tidy, tidy}},
    {"sleeper pushes, free", 0, 3, {have_half_magazine, have_letter, start_last},
     {push, send_letter, free_other}, {wake, tidy, tidy}},
    {"sleeper pushes twice, free", 0, 3, {have_half_magazine, have_letter, start_last},
     {push_twice, send_letter, free_other}, {wake, tidy, tidy}},
    {"sleeper ends, free", 0, 3, {have_blocks, have_letter, start_last}, {end, send_letter, free_other}, {NULL, tidy, tidy}},
    {"sleeper and taker", 0, 3, {have_full_magazine, have_letter, start_last},
     {nothing, send_letter, take}, {wake, tidy, tidy}},
    {"sleeper pops, taker", 0, 3, {have_full_magazine, have_letter, start_last},
     {pop, send_letter, take}, {wake, tidy, tidy}},
    {"sleeper push pop, taker", 0, 3, {have_half_magazine, have_letter, start_last},
     {push_pop, send_letter, take}, {wake, tidy, tidy}},
    {"sleeper ends, taker", 0, 3, {have_blocks, have_letter, start_last},
     {end, send_letter, take_from_ended}, {NULL, tidy, tidy}},
    {"sleeper and birth", 0, 3, {have_full_magazine, have_letter_last, NULL},
     {nothing, send_letter, take}, {wake, tidy, tidy}},
    {"sleeper ends, birth", 0, 3, {have_blocks, have_letter_last, NULL}, {end, send_letter, start}, {NULL, tidy, tidy}},
    {"sleeper and trim", 0, 3, {have_full_magazine, have_letter, start_last},
     {nothing, send_letter, trim}, {wake, tidy, tidy}},
    {"sleeper pops, trim", 0, 3, {have_full_magazine, have_letter, start_last}, {pop, send_letter, trim}, {wake, tidy, tidy}},
    {0},
};
