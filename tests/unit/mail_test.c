/* heap/mail.h: blocks of other heaps arrive, in order to be used again, wherever they have moved. */
#include "unit.h"

#include "arena/meta.h"
#include "fake_os.h"
#include "heap/letter.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/shelf.h"
#include "heaps.h"
#include "worker.h"

enum { CLASS = 4, SIZE = 64, BLOCKS = 500 };

static void *blocks[BLOCKS];

static void pop_all(struct heap *heap, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = magazine_pop(heap, CLASS);
        CHECK(blocks[i] != NULL && heap_of(blocks[i]) == heap);
    }
    magazine_flush_all(heap);
    CHECK(heap->shelf[CLASS].blocks_out == count);
}

/* Another heap that has given out BLOCKS, of which the first `count` have been freed and are in its inbox. */
static struct heap *other_with_mail(struct view **word, int count)
{
    struct heap *own = heap_own();
    struct heap *other = heap_other(word);
    pop_all(other, BLOCKS);
    for (int i = 0; i < count; i++)
        hak_free(blocks[i]);
    mail_post_all(own);
    return other;
}

static void blocks_arrive(void)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    pop_all(other, 10);
    for (int i = 0; i < 10; i++)
        hak_free(blocks[i]);
    CHECK(!mail_waits(other));
    mail_post_all(own);
    CHECK(mail_waits(other));
    mail_collect(other, true);
    CHECK(!mail_waits(other));
    CHECK(magazine_count(other, CLASS) == 10);
    for (int i = 9; i >= 0; i--)
        CHECK(magazine_pop(other, CLASS) == blocks[i]);
}

static void blocks_arrive_in_slabs(void)
{
    struct view *word;
    struct heap *other = other_with_mail(&word, BLOCKS);
    mail_collect(other, false);
    CHECK(magazine_count(other, CLASS) == 0);
    CHECK(other->shelf[CLASS].blocks_out == 0);
}

/* What does not fit the magazines goes to slabs. */
static void full_magazines_overflow_to_slabs(void)
{
    struct view *word;
    struct heap *other = other_with_mail(&word, BLOCKS);
    mail_collect(other, true);
    CHECK(magazine_count(other, CLASS) == other->shelf[CLASS].capacity);
    CHECK(other->shelf[CLASS].blocks_out == other->shelf[CLASS].capacity);
}

/* One letter is enough for the magazine that is empty; the others wait, and nothing else is served by them. */
static void letters_are_read_as_blocks_are_needed(void)
{
    struct view *word;
    struct heap *other = other_with_mail(&word, 3 * LETTER_BLOCKS);
    magazine_widen(other, CLASS, 2 * LETTER_BLOCKS);
    CHECK(mail_fill(other, CLASS));
    CHECK(magazine_count(other, CLASS) == LETTER_BLOCKS);
    CHECK(mail_waits(other) && other->inbox == NULL);
    magazine_flush(other, CLASS, SIZE_MAX);
    CHECK(other->shelf[CLASS].blocks_out == BLOCKS - LETTER_BLOCKS);

    /* What comes meanwhile is read after what was there. */
    for (int i = 3 * LETTER_BLOCKS; i < 4 * LETTER_BLOCKS; i++)
        hak_free(blocks[i]);
    struct letter *last = other->inbox;
    CHECK(last != NULL);
    for (int letters = 0; letters < 2; letters++) {
        CHECK(mail_fill(other, CLASS) && other->inbox == last);
        magazine_flush(other, CLASS, SIZE_MAX);
    }
    CHECK(other->unread == NULL);
    CHECK(mail_fill(other, CLASS) && !mail_waits(other));
    magazine_flush(other, CLASS, SIZE_MAX);
    CHECK(!mail_fill(other, CLASS));
    CHECK(other->shelf[CLASS].blocks_out == BLOCKS - 4 * LETTER_BLOCKS);
}

/* Of a class that is not in them: all are read, and the rest of the door does without. */
static void letters_without_the_class_are_read_to_the_end(void)
{
    struct view *word;
    struct heap *other = other_with_mail(&word, BLOCKS);
    CHECK(!mail_fill(other, CLASS + 1));
    CHECK(!mail_waits(other));
}

static void full_letters_are_posted(void)
{
    struct view *word;
    heap_own();
    struct heap *other = heap_other(&word);
    pop_all(other, LETTER_BLOCKS);
    for (int i = 0; i < LETTER_BLOCKS; i++) {
        CHECK(!mail_waits(other));
        hak_free(blocks[i]);
    }
    CHECK(mail_waits(other));
}

/* So much mail is read for its owner once it is late, which here it never is. */
static void outboxes_hold_few_bytes(void)
{
    struct view *word;
    fake_clock_set(1000);
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    const unsigned class = SIZE_CLASSES_FIXED - 1;
    for (int i = 0; i < 3; i++)
        blocks[i] = magazine_pop(other, class);
    hak_free(blocks[0]);
    hak_free(blocks[1]);
    CHECK(!mail_waits(other));
    CHECK(own->outbox_bytes == 2 * SMALL_MAX);
    hak_free(blocks[2]);
    CHECK(mail_waits(other));
    CHECK(own->outbox_bytes == 0);
}

/* More destinations than outboxes, and letters that are reused many times. */
static void many_heaps_get_their_own(void)
{
    enum { HEAPS = 100, ROUNDS = 50 };
    static struct view *words[HEAPS];
    struct heap *heaps[HEAPS];
    struct heap *own = heap_own();
    for (int i = 0; i < HEAPS; i++)
        heaps[i] = heap_other(&words[i]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < HEAPS; i++)
            for (int j = 0; j < 5; j++)
                blocks[5 * i + j] = magazine_pop(heaps[i], CLASS);
        for (int j = 0; j < 5; j++)
            for (int i = 0; i < HEAPS; i++)
                hak_free(blocks[5 * i + j]);
        mail_post_all(own);
        for (int i = 0; i < HEAPS; i++) {
            mail_collect(heaps[i], false);
            magazine_flush_all(heaps[i]);
            CHECK(heaps[i]->shelf[CLASS].blocks_out == 0);
        }
    }
}

/* Blocks that go by turns to as many heaps as there are outboxes travel together, wherever those heaps lie. */
static void letters_to_many_heaps_stay_open(void)
{
    enum { EACH = BLOCKS / OUTBOXES };
    static struct view *words[OUTBOXES];
    struct heap *heaps[OUTBOXES];
    struct heap *own = heap_own();
    for (int i = 0; i < OUTBOXES; i++) {
        heaps[i] = heap_other(&words[i]);
        CHECK(heaps[i]->number == heaps[0]->number + (unsigned)i);
        for (int j = 0; j < EACH; j++)
            blocks[i * EACH + j] = magazine_pop(heaps[i], CLASS);
    }
    for (int j = 0; j < EACH; j++)
        for (int i = 0; i < OUTBOXES; i++)
            hak_free(blocks[i * EACH + j]);
    CHECK(own->counts->of[COUNT_POSTED] == 0);
    mail_post_all(own);
    CHECK(own->counts->of[COUNT_POSTED] == OUTBOXES);
}

/* The slab changes owners while a letter with its blocks is on the way. */
static void adopted_blocks_are_forwarded(void)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    struct view *third_word;
    struct heap *third = heap_other(&third_word);
    pop_all(other, 20);
    for (int i = 0; i < 20; i++)
        hak_free(blocks[i]);
    mail_post_all(own);
    struct slab *slab = shelf_part_with(other, CLASS);
    CHECK(slab != NULL);
    shelf_adopt(third, slab);
    mail_collect(other, true);
    CHECK(!mail_waits(third));
    mail_post_all(other);
    CHECK(mail_waits(third));
    mail_collect(third, false);
    CHECK(third->shelf[CLASS].blocks_out == 0);
}

/* The same for blocks in a magazine. */
static void adopted_blocks_leave_magazines(void)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    magazine_widen(other, CLASS, 100);
    pop_all(other, 20);
    for (int i = 0; i < 20; i++)
        magazine_push(other, CLASS, blocks[i]);
    struct slab *slab = shelf_part_with(other, CLASS);
    shelf_adopt(own, slab);
    magazine_audit(other, CLASS);
    magazine_flush_all(other);
    mail_post_all(other);
    mail_collect(own, false);
    CHECK(own->shelf[CLASS].blocks_out == 0);
}

static void without_memory_the_sender_keeps_blocks(void)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    pop_all(other, 3);
    hak_free(hak_malloc(SIZE));
    magazine_flush(own, CLASS, SIZE_MAX);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    while (meta_alloc(64) != NULL)
        ;
    hak_free(blocks[0]);
    hak_free(blocks[1]);
    fake_os_obey();
    CHECK(magazine_count(own, CLASS) == 2);
    CHECK(hak_malloc(SIZE) == blocks[1]);
    CHECK(hak_malloc(SIZE) == blocks[0]);
    hak_free(blocks[0]);
    hak_free(blocks[1]);
    hak_free(blocks[2]);
    mail_post_all(own);
    mail_collect(other, false);
    CHECK(other->shelf[CLASS].blocks_out == 0);
}

static void send_a_fault(uintptr_t offset)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    pop_all(other, 2);
    hak_free((char *)blocks[0] + offset);
    if (offset == 0)
        hak_free(blocks[0]);
    mail_post_all(own);
    mail_collect(other, false);
}

static void faults_end_the_process(void)
{
    CHECK_DIES(send_a_fault, 0, "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)");
    CHECK_DIES(send_a_fault, 8, "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)");
}

static void free_all(void *count)
{
    for (size_t i = 0; i < *(size_t *)count; i++)
        hak_free(blocks[i]);
}

/* With a real thread on the other side, which ends: its outboxes are posted by then. */
static void exit_posts_everything(void)
{
    struct worker worker;
    struct heap *own = heap_own();
    size_t count = 100;
    for (size_t i = 0; i < count; i++)
        blocks[i] = hak_malloc(SIZE);
    magazine_flush_all(own);
    CHECK(own->shelf[CLASS].blocks_out == count);
    worker_start(&worker);
    worker_run(&worker, free_all, &count);
    CHECK(mail_waits(own));
    worker_stop(&worker);
    mail_collect(own, false);
    CHECK(own->shelf[CLASS].blocks_out == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(blocks_arrive),
        UNIT_TEST(blocks_arrive_in_slabs),
        UNIT_TEST(full_magazines_overflow_to_slabs),
        UNIT_TEST(letters_are_read_as_blocks_are_needed),
        UNIT_TEST(letters_without_the_class_are_read_to_the_end),
        UNIT_TEST(full_letters_are_posted),
        UNIT_TEST(outboxes_hold_few_bytes),
        UNIT_TEST(many_heaps_get_their_own),
        UNIT_TEST(letters_to_many_heaps_stay_open),
        UNIT_TEST(adopted_blocks_are_forwarded),
        UNIT_TEST(adopted_blocks_leave_magazines),
        UNIT_TEST(without_memory_the_sender_keeps_blocks),
        UNIT_TEST(faults_end_the_process),
        UNIT_TEST(exit_posts_everything),
    };
    return cmocka_run_group_tests_name("mail", tests, NULL, NULL);
}
