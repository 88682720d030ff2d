/* heap/life.h, heap/start.h: heaps outlive threads, and what the dead leave is used again. */
#include "unit.h"

#include <stdatomic.h>
#include <string.h>

#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heaps.h"
#include "worker.h"

enum { CLASS = 9, SIZE = 160, BLOCKS = 1000 };

static char *blocks[BLOCKS];

static void tell_heap(void *out)
{
    *(struct heap **)out = heap_own();
}

static void alloc_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(SIZE);
        memset(blocks[i], i % 100, SIZE);
    }
}

/* Frees all but every tenth. */
static void free_most(void *unused)
{
    (void)unused;
    for (int i = 0; i < BLOCKS; i++)
        if (i % 10 != 0)
            hak_free(blocks[i]);
}

static void in_new_thread(void (*job)(void *), void *argument)
{
    struct worker worker;
    worker_start(&worker);
    worker_run(&worker, job, argument);
    worker_stop(&worker);
}

/* The heap itself, which is aligned to more, does not. */
static void the_first_metadata_lies_between_the_views(void)
{
    const struct heap *heap = heap_own();
    const char *from = view_statics.between;
    const char *to = from + sizeof view_statics.between;
    CHECK(((const char *)heap->counts >= from && (const char *)heap->counts < to) != HARDENED);
    CHECK((const char *)heap < from || (const char *)heap >= to);
}

static void heaps_are_used_again(void)
{
    struct heap *first = NULL;
    struct heap *second = NULL;
    struct heap *own = heap_own();
    in_new_thread(tell_heap, &first);
    CHECK(first != own);
    CHECK(first->tls == NULL);
    for (int i = 0; i < 20; i++) {
        in_new_thread(tell_heap, &second);
        CHECK(second == first);
    }
    int heaps = 0;
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        heaps++;
    CHECK(heaps == 2);
}

static void threads_have_heaps_of_their_own(void)
{
    enum { THREADS = 8 };
    struct worker workers[THREADS];
    struct heap *heaps[THREADS];
    for (int i = 0; i < THREADS; i++) {
        worker_start(&workers[i]);
        worker_run(&workers[i], tell_heap, &heaps[i]);
        CHECK(heaps[i]->tls != NULL && *heaps[i]->tls == &heaps[i]->view);
        for (int j = 0; j < i; j++)
            CHECK(heaps[i] != heaps[j]);
    }
    for (int i = 0; i < THREADS; i++)
        worker_stop(&workers[i]);
}

static void slabs_of_the_dead_are_adopted(void)
{
    struct heap *dead = NULL;
    struct worker worker;
    struct heap *own = heap_own();
    worker_start(&worker);
    worker_run(&worker, tell_heap, &dead);
    worker_run(&worker, alloc_all, NULL);
    worker_run(&worker, free_most, NULL);
    worker_stop(&worker);
    CHECK(life_adopt(own, CLASS));
    int adopted = 0;
    for (int i = 0; i < BLOCKS; i += 10) {
        struct heap *heap = heap_of(blocks[i]);
        CHECK(heap == own || heap == dead);
        adopted += heap == own;
    }
    CHECK(adopted > 0);
    /* Ours now; what else is left arrives by mail. */
    for (int i = 0; i < BLOCKS; i += 10) {
        for (int j = 0; j < SIZE; j++)
            CHECK(blocks[i][j] == i % 100);
        hak_free(blocks[i]);
    }
    while (life_adopt(own, CLASS))
        ;
    CHECK(!life_adopt(own, CLASS + 1));
}

/* Where there is no other memory. */
static void the_last_of_many_idle_heaps_is_found(void)
{
    enum { THREADS = 20, WITH_ROOM = 12 };
    struct worker workers[THREADS];
    struct heap *heap;
    struct heap *own = heap_own();
    for (int i = 0; i < THREADS; i++) {
        worker_start(&workers[i]);
        worker_run(&workers[i], tell_heap, &heap);
    }
    worker_run(&workers[WITH_ROOM], alloc_all, NULL);
    worker_run(&workers[WITH_ROOM], free_most, NULL);
    for (int i = 0; i < THREADS; i++)
        worker_stop(&workers[i]);
    CHECK(!life_adopt(own, CLASS));
    CHECK(life_adopt_any(own, CLASS));
}

/* Adopted slabs whose other blocks sit in the dead heap's magazines, or are on their way to it. */
static void nothing_is_lost_in_adoption(void)
{
    struct worker worker;
    struct heap *own = heap_own();
    hak_malloc_trim(0);
    size_t before = span_used_bytes();
    for (int round = 0; round < 20; round++) {
        worker_start(&worker);
        worker_run(&worker, alloc_all, NULL);
        if (round % 2 == 0)
            worker_run(&worker, free_most, NULL);
        else
            free_most(NULL);
        worker_stop(&worker);
        char *more[BLOCKS];
        for (int i = 0; i < BLOCKS; i++)
            more[i] = hak_malloc(SIZE);
        for (int i = 0; i < BLOCKS; i++)
            hak_free(more[i]);
        for (int i = 0; i < BLOCKS; i += 10)
            hak_free(blocks[i]);
    }
    for (int i = 0; i < 4; i++)
        hak_malloc_trim(0);
    CHECK(span_used_bytes() == before);
    CHECK(own->shelf[CLASS].blocks_out == 0);
}

static void idle_heaps_are_cleaned(void)
{
    enum { THREADS = 6 };
    struct worker workers[THREADS];
    heap_own();
    hak_malloc_trim(0);
    size_t before = span_used_bytes();
    for (int i = 0; i < THREADS; i++) {
        worker_start(&workers[i]);
        worker_run(&workers[i], alloc_all, NULL);
        worker_run(&workers[i], free_most, NULL);
        for (int j = 0; j < BLOCKS; j += 10)
            hak_free(blocks[j]);
    }
    for (int i = 0; i < THREADS; i++)
        worker_stop(&workers[i]);
    CHECK(span_used_bytes() > before);
    hak_malloc_trim(0);
    hak_malloc_trim(0);
    CHECK(span_used_bytes() == before);
}

static void end_inside_the_door(void *out)
{
    tell_heap(out);
    heap_own()->in_door = 1;
}

/* A signal handler may end its thread anywhere. */
static void what_ends_inside_the_door_is_not_used_again(void)
{
    struct heap *ended = NULL;
    struct heap *next = NULL;
    heap_own();
    in_new_thread(end_inside_the_door, &ended);
    CHECK(ended->quarantined && ended->tls == NULL && ended->idle_in == NULL);
    in_new_thread(tell_heap, &next);
    CHECK(next != ended && next->idle_in != NULL);
    hak_malloc_trim(0);
}

static pthread_key_t late_key;
static _Atomic(char *) late_block;
static atomic_int late_rounds;

/* A destructor that comes back for as long as it is let, after ours. */
static void late(void *value)
{
    late_rounds++;
    char *block = late_block;
    if (block != NULL) {
        for (int i = 0; i < SIZE; i++)
            CHECK(block[i] == 7);
        hak_free(block);
    }
    block = hak_malloc(SIZE);
    CHECK(block != NULL);
    memset(block, 7, SIZE);
    late_block = block;
    for (size_t bytes = 1; bytes < 300000; bytes *= 3)
        hak_free(hak_malloc(bytes));
    pthread_setspecific(late_key, value);
}

static void use_late_key(void *heap)
{
    hak_free(hak_malloc(SIZE));
    tell_heap(heap);
    pthread_setspecific(late_key, &late_key);
}

static void late_destructors_may_allocate(void)
{
    struct heap *lent = NULL;
    heap_own();
    CHECK(pthread_key_create(&late_key, late) == 0);
    for (int i = 0; i < 10; i++) {
        struct heap *now = NULL;
        in_new_thread(use_late_key, &now);
        hak_free(late_block);
        late_block = NULL;
        /* Orphans have not taken what the first one has left in its magazines. */
        CHECK(i == 0 || now == lent);
        lent = now;
    }
    CHECK(late_rounds >= 40);
    /* One heap for the threads, one for orphans. */
    int heaps = 0;
    for (struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        heaps++;
    CHECK(heaps == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(heaps_are_used_again),         UNIT_TEST(threads_have_heaps_of_their_own),
        UNIT_TEST(slabs_of_the_dead_are_adopted), UNIT_TEST(nothing_is_lost_in_adoption),
        UNIT_TEST(the_last_of_many_idle_heaps_is_found),
        UNIT_TEST(idle_heaps_are_cleaned),       UNIT_TEST(what_ends_inside_the_door_is_not_used_again),
        UNIT_TEST(late_destructors_may_allocate), UNIT_TEST(the_first_metadata_lies_between_the_views),
    };
    return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
