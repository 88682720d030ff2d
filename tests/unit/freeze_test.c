/* heap/freeze.h: emptying the magazines of a thread that sleeps, and giving up on one that is at work. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/meta.h"
#include "fake_os.h"
#include "heap/events.h"
#include "heap/freeze.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heaps.h"
#include "worker.h"

enum { SIZE = 64, LIVE = 300, CACHED = 200 };

static char *live[LIVE];
static struct heap *sleeper;

/* Leaves full magazines and live blocks. */
static void fill(void *unused)
{
    char *cached[CACHED];
    (void)unused;
    sleeper = heap_own();
    hak_prewarm(SIZE, CACHED);
    for (int i = 0; i < CACHED; i++)
        cached[i] = hak_malloc(SIZE);
    for (int i = 0; i < LIVE; i++) {
        live[i] = hak_malloc(SIZE);
        memset(live[i], i % 100 + 1, SIZE);
    }
    for (int i = 0; i < CACHED; i++)
        hak_free(cached[i]);
}

static void check_live(void)
{
    for (int i = 0; i < LIVE; i++)
        for (int j = 0; j < SIZE; j++)
            CHECK(live[i][j] == i % 100 + 1);
}

/* New blocks overlap neither live ones nor each other. */
static void resume(void *unused)
{
    char *fresh[2 * CACHED];
    (void)unused;
    CHECK(view_load()->heap == sleeper);
    for (int i = 0; i < 2 * CACHED; i++) {
        fresh[i] = hak_malloc(SIZE);
        CHECK(fresh[i] != NULL);
        memset(fresh[i], i % 100 + 101, SIZE);
    }
    CHECK(view_load() == &sleeper->view);
    check_live();
    for (int i = 0; i < 2 * CACHED; i++) {
        for (int j = 0; j < SIZE; j++)
            CHECK((unsigned char)fresh[i][j] == i % 100 + 101);
        hak_free(fresh[i]);
    }
}

static void free_live(void *unused)
{
    (void)unused;
    check_live();
    for (int i = 0; i < LIVE; i++)
        hak_free(live[i]);
}

static size_t slots_with_blocks(const struct heap *heap)
{
    size_t count = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        for (size_t i = 1; i <= magazine_count(heap, class); i++)
            count += heap->shelf[class].slots[i] != NULL;
    return count;
}

/* All but the top of each magazine. */
static size_t slots_to_take(const struct heap *heap)
{
    size_t count = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        count += magazine_count(heap, class) > 0 ? magazine_count(heap, class) - 1 : 0;
    return count;
}

static size_t blocks_in_magazines(const struct heap *heap)
{
    size_t count = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        count += magazine_blocks(heap, class);
    return count;
}

static size_t live_blocks(void)
{
    struct hak_stats stats;
    CHECK(hak_stats_get(&stats, sizeof stats) == 0);
    return stats.small_blocks;
}

static void empty_sleeper(void)
{
    size_t live = live_blocks();
    CHECK(freeze_begin(sleeper));
    size_t wanted = slots_to_take(sleeper);
    size_t left = slots_with_blocks(sleeper) - wanted;
    CHECK(freeze_empty(sleeper) == wanted);
    CHECK(slots_with_blocks(sleeper) == left && blocks_in_magazines(sleeper) == left);
    freeze_end(sleeper);
    CHECK(live_blocks() == live);
}

static void sleeper_is_emptied_and_resumes(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    CHECK(slots_to_take(sleeper) >= CACHED - 1);
    empty_sleeper();
    CHECK(sleeper->frozen == FREEZE_HOLES);
    CHECK(*sleeper->tls == &sleeper->twin);
    check_live();
    worker_run(&worker, resume, NULL);
    CHECK(sleeper->frozen == FREEZE_NONE);
    CHECK(blocks_in_magazines(sleeper) == slots_with_blocks(sleeper));
    worker_run(&worker, free_live, NULL);
    worker_stop(&worker);
}

static void sleeper_may_be_frozen_again(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(freeze_begin(sleeper));
        freeze_empty(sleeper);
        freeze_end(sleeper);
    }
    CHECK(freeze_begin(sleeper));
    CHECK(freeze_empty(sleeper) == 0);
    freeze_end(sleeper);
    for (int i = 0; i < 3; i++) {
        worker_run(&worker, resume, NULL);
        empty_sleeper();
    }
    worker_run(&worker, free_live, NULL);
    worker_stop(&worker);
}

/* The first thing it does is to free: the block freed last may lie at the top. */
static void sleeper_may_wake_freeing(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    empty_sleeper();
    worker_run(&worker, free_live, NULL);
    CHECK(sleeper->frozen == FREEZE_NONE);
    worker_stop(&worker);
}

static void sleeper_may_be_freed_to(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    CHECK(freeze_begin(sleeper));
    freeze_end(sleeper);
    free_live(NULL);
    hak_malloc_trim(0);
    CHECK(!__atomic_load_n(&sleeper->inbox, __ATOMIC_RELAXED));
    worker_stop(&worker);
}

static void tell_heap(void *out)
{
    *(struct heap **)out = heap_own();
}

/* A thread that ends without coming to its door again. */
static void frozen_thread_may_end(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    empty_sleeper();
    worker_stop(&worker);
    struct heap *dead = sleeper;
    CHECK(dead->tls == NULL);
    CHECK(dead->frozen == FREEZE_NONE);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        for (size_t i = 1; i <= magazine_count(dead, class); i++)
            CHECK(dead->shelf[class].slots[i] != NULL);
    /* The next thread gets this heap. */
    struct heap *next = NULL;
    worker_start(&worker);
    worker_run(&worker, tell_heap, &next);
    CHECK(next == dead);
    worker_run(&worker, resume, NULL);
    worker_run(&worker, free_live, NULL);
    worker_stop(&worker);
}

/* As above, with idle heaps about, so that the one that ends is cleaned at once. */
static void frozen_thread_may_end_among_others(void)
{
    struct worker other;
    struct worker worker;
    heap_own();
    worker_start(&other);
    worker_start(&worker);
    worker_run(&other, fill, NULL);
    free_live(NULL);
    worker_run(&worker, fill, NULL);
    worker_stop(&other);
    empty_sleeper();
    worker_stop(&worker);
    hak_malloc_trim(0);
    free_live(NULL);
}

static sem_t in_door;
static sem_t go_on;

static void wait_in_door(struct heap *heap)
{
    (void)heap;
    heap_events.heartbeat = NULL;
    sem_post(&in_door);
    sem_wait(&go_on);
}

static void come_to_a_heartbeat(void *unused)
{
    fill(NULL);
    heap_events.heartbeat = wait_in_door;
    while (heap_events.heartbeat != NULL)
        hak_free(hak_malloc(SMALL_MAX));
    (void)unused;
}

static void thief_gives_up_at_a_busy_door(void)
{
    struct worker worker;
    heap_own();
    sem_init(&in_door, 0, 0);
    sem_init(&go_on, 0, 0);
    worker_start(&worker);
    worker_begin(&worker, come_to_a_heartbeat, NULL);
    sem_wait(&in_door);
    CHECK(!freeze_begin(sleeper));
    CHECK(sleeper->frozen == FREEZE_CLOSED);
    sem_post(&go_on);
    worker_wait(&worker);
    worker_run(&worker, resume, NULL);
    empty_sleeper();
    worker_run(&worker, resume, NULL);
    worker_run(&worker, free_live, NULL);
    worker_stop(&worker);
}

static void thief_gives_up_without_barrier(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    fake_os_refuse(FAKE_BARRIER, 1, FAKE_EVERY);
    CHECK(!freeze_begin(sleeper));
    CHECK(sleeper->frozen == FREEZE_CLOSED);
    hak_malloc_trim(0);
    fake_os_obey();
    worker_run(&worker, resume, NULL);
    worker_run(&worker, free_live, NULL);
    worker_stop(&worker);
    CHECK(!freeze_begin(sleeper)); /* no thread owns it now */
}

/* A magazine may hold blocks that another heap has adopted. Without memory for letters the thief cannot send
 * them on; still only the owner moves the top. */
static void thief_leaves_the_top_alone(void)
{
    struct worker worker;
    struct heap *own = heap_own();
    const unsigned class = size_class_of(SIZE);
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    struct slab *slab;
    while ((slab = shelf_part_with(sleeper, class)) != NULL)
        shelf_adopt(own, slab);
    fake_os_refuse(FAKE_RESERVE | FAKE_COMMIT, 1, FAKE_EVERY);
    while (meta_alloc(64) != NULL)
        ;
    void **top = sleeper->view.top[class];
    CHECK(freeze_begin(sleeper));
    freeze_empty(sleeper);
    CHECK(sleeper->view.top[class] == top);
    freeze_end(sleeper);
    fake_os_obey();
    worker_run(&worker, resume, NULL);
    worker_run(&worker, free_live, NULL);
    worker_stop(&worker);
}

/* As a thread leaves it whose end the allocator did not see, before the kernel says that it is gone. */
static void word_that_is_gone_is_left_alone(void)
{
    heap_own();
    struct view **word = word_on_a_stack();
    struct heap *heap = heap_other(word);
    CHECK(freeze_begin(heap));
    freeze_end(heap);
    CHECK(*word == &heap->twin);
    *word = STATIC_VIEW(unborn); /* another thread's now */
    CHECK(!freeze_begin(heap));
    hak_malloc_trim(0);
    CHECK(*word == STATIC_VIEW(unborn));
    unmap_stack(word);
    CHECK(!freeze_begin(heap));
    hak_malloc_trim(0);
    CHECK(heap->tls == word);
}

static struct view *with_twin_bit(const struct view *view)
{
    return (struct view *)((uintptr_t)view | (uintptr_t)1 << TWIN_BIT);
}

static void use_word(void *view)
{
    thread_view = view;
    void *block = hak_malloc(SIZE);
    CHECK(block != NULL);
    hak_free(block);
    hak_free(hak_malloc(1 << 20));
}

/* The bit came too late, and was set in the word of a thread that has taken the place. */
static void use_word_with_bit(void *view)
{
    use_word(with_twin_bit(view));
}

static void word_may_be_another_threads_by_now(void)
{
    struct worker worker;
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    empty_sleeper();
    worker_stop(&worker);
    for (int i = 0; i < 2; i++) {
        struct view *view = i == 0 ? STATIC_VIEW(unborn) : STATIC_VIEW(dead);
        struct static_view *twice = i == 0 ? &view_statics.doubles.unborn : &view_statics.doubles.dead;
        CHECK(with_twin_bit(view) == view || with_twin_bit(view) == (void *)twice);
        worker_start(&worker);
        worker_run(&worker, use_word_with_bit, view);
        worker_stop(&worker);
        worker_start(&worker);
        worker_run(&worker, use_word, twice);
        worker_stop(&worker);
        CHECK(twice->kind == view->kind && twice->heap == NULL && twice->budget < 0);
    }
}

static void budget_survives(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    int64_t before = sleeper->granted - sleeper->view.budget;
    for (int i = 1; i <= 5; i++) {
        empty_sleeper();
        worker_run(&worker, resume, NULL);
        CHECK(sleeper->granted - sleeper->view.budget == before + (int64_t)i * 2 * CACHED * SIZE);
    }
    worker_stop(&worker);
}

static void allocate_and_fork(int signal)
{
    (void)signal;
    void *volatile block = hak_malloc(SIZE);
    hak_free(block);
    pid_t child = fork();
    int status;
    if (child == 0) {
        hak_free(hak_malloc(SIZE));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* The thief finds a double free: the handler of SIGABRT runs while another heap's lock is held. */
static void trim_finds_double_free(uintptr_t unused)
{
    struct worker worker;
    (void)unused;
    signal(SIGABRT, allocate_and_fork);
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    void **slots = sleeper->shelf[size_class_of(SIZE)].slots;
    slots[1] = slots[2];
    hak_malloc_trim(0);
}

static void abort_handler_may_allocate_and_fork(void)
{
    CHECK_DIES(trim_finds_double_free, 0, "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(sleeper_is_emptied_and_resumes),
        UNIT_TEST(sleeper_may_be_frozen_again),
        UNIT_TEST(sleeper_may_wake_freeing),
        UNIT_TEST(sleeper_may_be_freed_to),
        UNIT_TEST(frozen_thread_may_end),
        UNIT_TEST(frozen_thread_may_end_among_others),
        UNIT_TEST(thief_gives_up_at_a_busy_door),
        UNIT_TEST(thief_gives_up_without_barrier),
        UNIT_TEST(thief_leaves_the_top_alone),
        UNIT_TEST(word_that_is_gone_is_left_alone),
        UNIT_TEST(word_may_be_another_threads_by_now),
        UNIT_TEST(budget_survives),
        UNIT_TEST(abort_handler_may_allocate_and_fork),
    };
    return cmocka_run_group_tests_name("freeze", tests, NULL, NULL);
}
