/*
 * A signal handler that takes and gives back blocks comes after each single instruction of a thread that reads its mail, or sends
 * some: each block is somewhere exactly once afterwards.
 */
#include "heap/entry.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heaps.h"
#include "step.h"
#include "unit.h"

enum { CLASS = 4, SIZE = 64, BLOCKS = 2, IN_HANDLER = 4, LARGE = 100000, STEPS_MOST = 20000 };

static struct heap *own;
static struct heap *other;
static void *blocks[BLOCKS]; /* the other heap's, or this one's, to be freed */
static void *handlers[IN_HANDLER]; /* what the handler keeps, and frees */

/* Requests are refused where its thread holds a lock. */
static void take_three_free_two(void)
{
    for (int i = 1; i <= 3; i++)
        handlers[i] = hak_malloc(SIZE);
    hak_free(handlers[0]);
    hak_free(handlers[2]);
    handlers[0] = handlers[2] = NULL;
}

static void free_one(void)
{
    hak_free(handlers[0]);
    handlers[0] = NULL;
}

/* The magazine's top is where it was, and another block lies there. */
static void free_one_take_one(void)
{
    free_one();
    handlers[1] = hak_malloc(SIZE);
}

static void take_one_free_one(void)
{
    handlers[1] = hak_malloc(SIZE);
    free_one();
}

static void check_handlers_blocks(void)
{
    for (int i = 0; i < IN_HANDLER; i++)
        for (int j = 0; j < i; j++)
            CHECK(handlers[i] == NULL || handlers[i] != handlers[j]);
}

/* All blocks of CLASS go back to slabs; what is out then is what somebody has. */
static void gather(struct heap *heap)
{
    hak_free(hak_malloc(LARGE)); /* what the handler has left for the next visit to the door */
    mail_collect(heap, false);
    magazine_audit(heap, CLASS);
    magazine_flush(heap, CLASS, SIZE_MAX);
}

static void release_handlers_blocks(void)
{
    check_handlers_blocks();
    for (int i = 0; i < IN_HANDLER; i++) {
        hak_free(handlers[i]);
        handlers[i] = NULL;
    }
}

/* This heap's blocks come by letter while its magazine has one block, and room for some. */
static void prepare_to_read(void)
{
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hak_malloc(SIZE)) != NULL);
    CHECK((handlers[0] = hak_malloc(SIZE)) != NULL);
    magazine_flush(own, CLASS, SIZE_MAX);
    hak_free(hak_malloc(SIZE));
    magazine_flush(own, CLASS, magazine_count(own, CLASS) - 1);
    for (int i = 0; i < BLOCKS; i++)
        CHECK(mail_send(other, own, blocks[i]));
    mail_post_all(other);
}

static void read_mail(void)
{
    entry_enter(own, view_load());
    mail_collect(own, true);
    entry_leave(own);
}

static void prepare_to_send(void)
{
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = magazine_pop(other, CLASS)) != NULL);
    CHECK((handlers[0] = magazine_pop(other, CLASS)) != NULL);
}

static void send_mail(void)
{
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
}

static void step_once(int instruction, void (*handler)(void), void (*prepare)(void), void (*action)(void))
{
    prepare();
    CHECK(step_interrupt_after(instruction, handler));
    action();
    step_end();
    CHECK(own->in_door == 0);
    release_handlers_blocks();
    gather(own);
    mail_post_all(own);
    gather(other);
    mail_post_all(other);
    gather(own);
    CHECK(own->shelf[CLASS].blocks_out == 0 && other->shelf[CLASS].blocks_out == 0);
}

static void step_through(void (*handler)(void), void (*prepare)(void), void (*action)(void))
{
    struct view *word;
    int instruction = 0;
    own = heap_own();
    other = heap_other(&word);
    do {
        step_once(++instruction, handler, prepare, action);
        CHECK(instruction < STEPS_MOST);
    } while (step_was_interrupted());
    CHECK(instruction > 100);
}

static void reading(void)
{
    step_through(take_three_free_two, prepare_to_read, read_mail);
    step_through(free_one, prepare_to_read, read_mail);
    step_through(free_one_take_one, prepare_to_read, read_mail);
    step_through(take_one_free_one, prepare_to_read, read_mail);
}

static void sending(void)
{
    step_through(take_three_free_two, prepare_to_send, send_mail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(reading),
        UNIT_TEST(sending),
    };
    return cmocka_run_group_tests_name("mail_step", tests, NULL, NULL);
}
