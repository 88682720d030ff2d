/* heap/sleeper.h: what is sent to threads that sleep, or have ended, does not pile up. */
#include "unit.h"

#include "fake_os.h"
#include "heap/freeze.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/sleeper.h"
#include "heaps.h"
#include "worker.h"

enum { BLOCKS = 8192, SIZE = 1024, LATE_MS = 3, NOT_LATE_MS = 2, START_MS = 1000 };

static char *blocks[BLOCKS];

static void make_blocks(void *heap)
{
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hak_malloc(SIZE)) != NULL);
    *(struct heap **)heap = heap_own();
}

/* Neighbours, so that slabs become empty. */
static void free_bytes(int first, size_t bytes)
{
    for (int i = first; i < first + (int)(bytes / SIZE); i++)
        hak_free(blocks[i]);
}

static size_t out_bytes(const struct heap *heap)
{
    return (size_t)heap->shelf[size_class_of(SIZE)].blocks_out * SIZE;
}

/* A worker that holds the blocks and sleeps. */
static struct heap *start_sleeper(struct worker *worker)
{
    struct heap *sleeper;
    heap_own();
    fake_clock_set(START_MS);
    worker_start(worker);
    worker_run(worker, make_blocks, &sleeper);
    CHECK(out_bytes(sleeper) >= BLOCKS * SIZE);
    return sleeper;
}

/* As many heartbeats as there are heaps. */
static void look_at_all(void)
{
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        sleeper_look(heap_own());
}

static void much_mail_is_collected_by_its_sender(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    size_t used = span_used_bytes();
    free_bytes(0, 4 * MIB);
    CHECK(out_bytes(sleeper) < BLOCKS * SIZE - MIB);
    CHECK(span_used_bytes() < used - MIB);
    free_bytes(BLOCKS / 2, 4 * MIB);
    CHECK(out_bytes(sleeper) < 3 * MIB);
    CHECK(sleeper->frozen == FREEZE_HOLES);
    worker_run(&worker, make_blocks, &sleeper);
    CHECK(sleeper->frozen == FREEZE_NONE);
    free_bytes(0, BLOCKS * SIZE);
    worker_stop(&worker);
}

enum { SOME = 2048 };

static void make_some(void *heap)
{
    for (int i = 0; i < SOME; i++)
        CHECK((blocks[i] = hak_malloc(SIZE)) != NULL);
    *(struct heap **)heap = heap_own();
}

/* So that no slab becomes empty. */
static void free_every_other(void)
{
    for (int i = 0; i < SOME; i += 2)
        hak_free(blocks[i]);
    mail_post_all(heap_own());
}

static int still_of(const struct heap *heap)
{
    int of = 0;
    for (int i = 1; i < SOME; i += 2)
        of += heap_of(blocks[i]) == heap;
    return of;
}

/* A worker whose heap is small, and who has not been at its door since others freed much of it. */
static struct heap *start_small_sleeper(struct worker *worker)
{
    struct heap *sleeper;
    heap_own();
    fake_clock_set(START_MS);
    worker_start(worker);
    worker_run(worker, make_some, &sleeper);
    free_every_other();
    return sleeper;
}

static void free_the_rest(void)
{
    for (int i = 1; i < SOME; i += 2)
        hak_free(blocks[i]);
}

/* Long before it is late, and without the owner's being asked. */
static void room_in_a_sleepers_slabs_is_for_others(void)
{
    static char *others[SOME / 4];
    struct worker worker;
    struct heap *sleeper = start_small_sleeper(&worker);
    CHECK(still_of(sleeper) < SOME / 4);
    size_t used = span_used_bytes();
    for (int i = 0; i < SOME / 4; i++)
        CHECK((others[i] = hak_malloc(SIZE)) != NULL);
    CHECK(span_used_bytes() == used);
    for (int i = 0; i < SOME / 4; i++)
        hak_free(others[i]);
    free_the_rest();
    worker_stop(&worker);
}

/* It only waited: the next time its slabs are left to it, and its mail may be more. */
static void who_came_back_keeps_its_slabs(void)
{
    struct worker worker;
    struct heap *sleeper = start_small_sleeper(&worker);
    free_the_rest();
    CHECK(sleeper->woken == 0);
    worker_run(&worker, make_some, &sleeper);
    CHECK(sleeper->woken == 1);
    free_every_other();
    CHECK(still_of(sleeper) == SOME / 2);
    free_the_rest();
    worker_stop(&worker);
}

/* Nobody sends any more: another thread finds it at one of its heartbeats, and takes what the magazines hold too. */
static void late_mail_is_found(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    free_bytes(0, MIB);
    fake_clock_set(START_MS + NOT_LATE_MS);
    look_at_all();
    CHECK(out_bytes(sleeper) >= BLOCKS * SIZE);
    fake_clock_set(START_MS + LATE_MS);
    look_at_all();
    CHECK(!mail_waits(sleeper));
    CHECK(out_bytes(sleeper) <= BLOCKS * SIZE - MIB + 64 * KIB); /* less than a letter may be in the outbox */
    worker_stop(&worker);
}

static void read_one_letter(void *heap)
{
    CHECK(mail_fill(heap, size_class_of(SIZE)));
}

static void empty_magazine(void *heap)
{
    magazine_flush(heap, size_class_of(SIZE), SIZE_MAX);
}

/* A thread that reads, but not all at once, is awake; if it sleeps then, the rest becomes late. */
static void who_reads_is_awake(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    free_bytes(0, MIB);
    mail_post_all(heap_own());
    fake_clock_set(START_MS + LATE_MS);
    worker_run(&worker, empty_magazine, sleeper);
    worker_run(&worker, read_one_letter, sleeper);
    CHECK(mail_waits(sleeper) && mail_state(sleeper) == MAIL_FINE);
    fake_clock_set(START_MS + LATE_MS + NOT_LATE_MS);
    CHECK(mail_state(sleeper) == MAIL_FINE);
    fake_clock_set(START_MS + 2 * LATE_MS);
    CHECK(mail_state(sleeper) == MAIL_LATE);
    look_at_all();
    CHECK(!mail_waits(sleeper));
    CHECK(out_bytes(sleeper) <= BLOCKS * SIZE - MIB + 64 * KIB);
    worker_stop(&worker);
}

static void late_mail_is_collected_by_the_next_sender(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    free_bytes(0, MIB);
    CHECK(out_bytes(sleeper) >= BLOCKS * SIZE);
    fake_clock_set(START_MS + LATE_MS);
    free_bytes(BLOCKS / 2, 128 * KIB);
    CHECK(out_bytes(sleeper) < BLOCKS * SIZE - MIB + 64 * KIB);
    worker_stop(&worker);
}

static void little_mail_may_wait(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    free_bytes(0, 63 * KIB);
    mail_post_all(heap_own());
    fake_clock_set(START_MS + 1000);
    look_at_all();
    CHECK(mail_waits(sleeper));
    worker_stop(&worker);
}

/* Its heap is idle, and warm. */
static void mail_of_an_ended_thread_is_collected(void)
{
    struct worker worker;
    struct heap *ended = start_sleeper(&worker);
    worker_stop(&worker);
    CHECK(ended->tls == NULL && out_bytes(ended) >= BLOCKS * SIZE);
    for (int i = 0; i < 8; i++) {
        free_bytes(i * 1024, MIB);
        CHECK(out_bytes(ended) <= BLOCKS * SIZE - (size_t)(i + 1) * MIB + 256 * KIB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(much_mail_is_collected_by_its_sender),
        UNIT_TEST(room_in_a_sleepers_slabs_is_for_others),
        UNIT_TEST(who_came_back_keeps_its_slabs),
        UNIT_TEST(late_mail_is_found),
        UNIT_TEST(who_reads_is_awake),
        UNIT_TEST(late_mail_is_collected_by_the_next_sender),
        UNIT_TEST(little_mail_may_wait),
        UNIT_TEST(mail_of_an_ended_thread_is_collected),
    };
    return cmocka_run_group_tests_name("sleeper", tests, NULL, NULL);
}
