/* heap/fork.h: the child sees every heap whole, and inherits those of the threads that it does not have. */
#include "unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/events.h"
#include "heap/fork.h"
#include "heap/freeze.h"
#include "heap/magazine.h"
#include "heaps.h"
#include "span/shards.h"
#include "step.h"
#include "worker.h"

enum { SIZE = 64, CLASS = 4, BLOCKS = 300, CACHED = 100 };

static char *blocks[BLOCKS];
static struct heap *vanished;

/* Another thread brings it about. */
#define CHECK_SOON(condition)                         \
    do {                                              \
        for (int i = 0; i < 5000 && !(condition); i++) \
            usleep(1000);                             \
        CHECK(condition);                             \
    } while (0)

static void fill(void *unused)
{
    char *cached[CACHED];
    (void)unused;
    vanished = heap_own();
    for (int i = 0; i < CACHED; i++)
        cached[i] = hak_malloc(SIZE);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(SIZE);
        memset(blocks[i], i % 100 + 1, SIZE);
    }
    for (int i = 0; i < CACHED; i++)
        hak_free(cached[i]);
    memset(blocks[0], 1, SIZE);
}

static void check_blocks(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int j = 0; j < SIZE; j++)
            CHECK(blocks[i][j] == i % 100 + 1);
}

static void use(void)
{
    char *fresh[1000];
    for (int i = 0; i < 1000; i++) {
        fresh[i] = hak_malloc(SIZE);
        CHECK(fresh[i] != NULL);
        memset(fresh[i], 0x7f, SIZE);
    }
    check_blocks();
    for (int i = 0; i < 1000; i++)
        hak_free(fresh[i]);
    for (size_t bytes = 1; bytes < 1000000; bytes *= 3) {
        char *block = hak_malloc(bytes);
        CHECK(block != NULL);
        block[0] = block[bytes - 1] = 1;
        hak_free(block);
    }
}

static void use_and_free(void *unused)
{
    (void)unused;
    use();
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
}

/* Forks; the child does its part and must end well. */
static void fork_and(void (*part)(void))
{
    CHECK(!fork_holds_any_lock());
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(!fork_holds_any_lock());
        part();
        _exit(0);
    }
    CHECK(!fork_holds_any_lock());
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

static void inherit(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(vanished->tls == NULL && !vanished->quarantined);
    use_and_free(NULL);
    hak_malloc_trim(0);
    CHECK(vanished->shelf[CLASS].blocks_out == 0);
    CHECK(life_birth(&word) == vanished);
    CHECK(word == &vanished->view);
    CHECK(vanished->frozen == FREEZE_NONE);
}

static void child_inherits_heaps(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    fork_and(inherit);
    CHECK(*vanished->tls == &vanished->twin);
    worker_run(&worker, use_and_free, NULL);
    CHECK(*vanished->tls == &vanished->view);
    worker_stop(&worker);
}

/* What a thief has left has holes. */
static void inherit_holes(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(life_birth(&word) == vanished);
    CHECK(vanished->frozen == FREEZE_NONE);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        for (size_t i = 1; i <= magazine_count(vanished, class); i++)
            CHECK(vanished->shelf[class].slots[i] != NULL);
    for (int i = 0; i < 1000; i++)
        CHECK(magazine_pop(vanished, CLASS) != NULL);
}

static void child_inherits_frozen_heaps(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    CHECK(freeze_begin(vanished));
    CHECK(freeze_empty(vanished) > 0);
    freeze_end(vanished);
    fork_and(inherit_holes);
    CHECK(vanished->frozen == FREEZE_HOLES);
    worker_run(&worker, use_and_free, NULL);
    worker_stop(&worker);
}

static struct heap *caller;

static void use_own_again(void)
{
    CHECK(view_load()->heap == caller);
    use_and_free(NULL);
    CHECK(view_load() == &caller->view);
}

static void freeze_caller(void *unused)
{
    (void)unused;
    CHECK(freeze_begin(caller));
    freeze_empty(caller);
    freeze_end(caller);
}

/* The forking thread's own heap is frozen at that moment. */
static void child_keeps_its_own_frozen_heap(void)
{
    struct worker worker;
    caller = heap_own();
    fill(NULL);
    worker_start(&worker);
    worker_run(&worker, freeze_caller, NULL);
    fork_and(use_own_again);
    use_and_free(NULL);
    worker_stop(&worker);
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
    fill(unused);
    heap_events.heartbeat = wait_in_door;
    while (heap_events.heartbeat != NULL)
        hak_free(hak_malloc(SMALL_MAX));
}

static void leave_alone(void)
{
    CHECK(vanished->quarantined);
    CHECK(vanished->tls == NULL);
    CHECK(!freeze_begin(vanished));
    hak_malloc_trim(0);
    struct view *word = STATIC_VIEW(unborn);
    CHECK(life_birth(&word) != vanished);
}

static void use_and_leave_alone(void)
{
    use_and_free(NULL);
    leave_alone();
}

/* Its thread ended without a word, and its stack is unmapped already; the kernel does not yet say that it is gone. */
static void heap_whose_word_is_gone_is_quarantined(void)
{
    heap_own();
    struct view **word = word_on_a_stack();
    vanished = heap_other(word);
    unmap_stack(word);
    fork_and(leave_alone);
    CHECK(!vanished->quarantined);
}

static void heap_of_a_busy_door_is_quarantined(void)
{
    struct worker worker;
    heap_own();
    sem_init(&in_door, 0, 0);
    sem_init(&go_on, 0, 0);
    worker_start(&worker);
    worker_begin(&worker, come_to_a_heartbeat, NULL);
    sem_wait(&in_door);
    fork_and(use_and_leave_alone);
    CHECK(!vanished->quarantined);
    sem_post(&go_on);
    worker_wait(&worker);
    worker_run(&worker, use_and_free, NULL);
    worker_stop(&worker);
}

static atomic_bool enough;
static atomic_bool may_end; /* of the visitor's signal handler, where it has one */
static struct worker visitor;

static void come_and_go(void *unused)
{
    fill(unused);
    sem_post(&in_door);
    while (!atomic_load(&enough))
        hak_free(hak_malloc(SIZE));
}

/* All heaps are closed by now. */
static void wait_for_the_visitor(void)
{
    CHECK_SOON(load_relaxed(&vanished->in_door) == DOOR_WAITS);
}

/* But for one block, if its owner was about to free that. */
static void inherit_all(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(vanished->tls == NULL && !vanished->quarantined);
    use_and_free(NULL);
    hak_malloc_trim(0);
    CHECK(vanished->shelf[CLASS].blocks_out <= 1);
    CHECK(life_birth(&word) == vanished && vanished->in_door == DOOR_OUTSIDE);
}

static void fork_among_visits(void (*part)(void))
{
    sem_init(&in_door, 0, 0);
    worker_start(&visitor);
    worker_begin(&visitor, come_and_go, NULL);
    sem_wait(&in_door);
    fork_and(part);
    atomic_store(&may_end, true);
    atomic_store(&enough, true);
    worker_wait(&visitor);
    worker_run(&visitor, use_and_free, NULL);
    worker_stop(&visitor);
}

/* Of a heap whose owner has come to its door and cannot enter, nothing is half done. */
static void child_inherits_heaps_at_whose_door_someone_waits(void)
{
    CHECK(pthread_atfork(wait_for_the_visitor, NULL, NULL) == 0); /* runs after the allocator's */
    heap_own();
    fork_among_visits(inherit_all);
}

static sem_t may_return;

static void *fill_and_return(void *unused)
{
    fill(unused);
    sem_post(&in_door);
    sem_wait(&may_return);
    return unused;
}

/* The fork has the life lock, and no heap's yet, when the thread ends. */
static void *let_it_end(void *newest)
{
    struct heap *heap = newest;
    lock_take(&heap->lock);
    sem_post(&go_on);
    CHECK_SOON(lock_is_wanted(&heap->lock));
    sem_post(&may_return);
    CHECK_SOON(lock_is_wanted(&life_lock));
    lock_drop(&heap->lock);
    return NULL;
}

static void inherit_of_ending(void)
{
    CHECK(vanished->tls == NULL && !vanished->quarantined && vanished->idle_in != NULL);
    use_and_free(NULL);
    hak_malloc_trim(0);
    CHECK(vanished->shelf[CLASS].blocks_out == 0);
}

/* A thread that ends while another forks waits for that with a heap that is whole. */
static void child_inherits_heaps_of_ending_threads(void)
{
    static struct view *word;
    pthread_t ending;
    pthread_t holder;
    heap_own();
    sem_init(&in_door, 0, 0);
    sem_init(&go_on, 0, 0);
    sem_init(&may_return, 0, 0);
    CHECK(pthread_create(&ending, NULL, fill_and_return, NULL) == 0);
    sem_wait(&in_door);
    CHECK(pthread_create(&holder, NULL, let_it_end, heap_other(&word)) == 0);
    sem_wait(&go_on);
    fork_and(inherit_of_ending);
    CHECK(pthread_join(holder, NULL) == 0 && pthread_join(ending, NULL) == 0);
    inherit_of_ending();
}

static atomic_bool is_between;
static void *put_off;

/* The place of the block is taken, and nothing stands in it. */
static void stop_between(int signal)
{
    (void)signal;
    if (vanished->deferred_count != 1 || vanished->deferred[0] != NULL)
        return;
    atomic_store(&is_between, true);
    while (!atomic_load(&may_end)) {}
}

static void free_step_by_step(int signal)
{
    (void)signal;
    CHECK(step_begin());
    hak_free(put_off);
    step_end();
}

static void interrupt_the_visitor(void)
{
    wait_for_the_visitor();
    CHECK(pthread_kill(visitor.thread, SIGUSR1) == 0);
    CHECK_SOON(atomic_load(&is_between));
}

static void take_its_place(void *unused)
{
    use_and_free(unused);
    CHECK(view_load()->heap == vanished && vanished->deferred_count == 0);
}

static void take_over(void)
{
    struct worker heir;
    CHECK(vanished->deferred_count == 1);
    worker_start(&heir);
    worker_run(&heir, take_its_place, NULL);
    worker_stop(&heir);
}

/* A handler of who waits at the door puts a free off, and the fork comes while it does: what is not there yet is no block. */
static void child_inherits_what_was_put_off(void)
{
    if (HAK_SANITIZED) /* which keep signals back */
        return;
    CHECK(pthread_atfork(interrupt_the_visitor, NULL, NULL) == 0); /* runs after the allocator's */
    vanished = heap_own();
    CHECK(signal(SIGTRAP, stop_between) != SIG_ERR && signal(SIGUSR1, free_step_by_step) != SIG_ERR);
    if (!step_begin())
        return;
    step_end();
    put_off = hak_malloc(SIZE);
    fork_among_visits(take_over);
}

static int handlers;

static void allocate_in_handler(void)
{
    void *small = hak_malloc(SIZE);
    void *large = hak_malloc(200000);
    CHECK(small != NULL && large != NULL);
    hak_free(small);
    hak_free(large);
    handlers++;
}

static void nothing_more(void)
{
    CHECK(handlers == 2);
    use_and_free(NULL);
}

/* Registered before the allocator's handlers: its prepare runs after theirs, its others before theirs. */
static void other_handlers_may_allocate(void)
{
    CHECK(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler) == 0);
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    fork_and(nothing_more);
    CHECK(handlers == 2);
    worker_run(&worker, use_and_free, NULL);
    worker_stop(&worker);
}

static void count_bytes(void)
{
    int64_t before = caller->granted - caller->view.budget;
    hak_free(hak_malloc(SIZE));
    CHECK(caller->granted - caller->view.budget == before + SIZE);
}

static void budget_survives(void)
{
    struct worker worker;
    caller = heap_own();
    fill(NULL);
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    int64_t before = vanished->granted - vanished->view.budget;
    for (int i = 0; i < 5; i++)
        fork_and(count_bytes);
    CHECK(vanished->granted - vanished->view.budget == before);
    worker_stop(&worker);
}

static void fork_again(void)
{
    fork_and(use);
    use();
}

static void children_may_fork(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill, NULL);
    fork_and(fork_again);
    worker_stop(&worker);
}

enum { CHURNERS = 4, FORKS = 40, UNITS_MOST = 20, PROCESSORS = 64 };

static atomic_bool enough;

static void take_and_give(unsigned rounds)
{
    void *runs[8];
    bool zero;
    for (unsigned round = 0; round < rounds; round++) {
        for (size_t i = 0; i < 8; i++)
            CHECK((runs[i] = span_take(1 + (round + i * 3) % UNITS_MOST, 1, &zero)) != NULL);
        for (size_t i = 0; i < 8; i++)
            span_give(runs[i], 1 + (round + i * 3) % UNITS_MOST, true);
        if (round % 4 == 0)
            (void)span_purge_all();
    }
}

static void churn(void *unused)
{
    (void)unused;
    while (!enough)
        take_and_give(1);
}

/* What another thread was purging is free again, in whatever shard; what it had in runs stays its. */
static void use_shards(void)
{
    for (unsigned i = 0; i < shards_count(); i++)
        CHECK(span_shards[i].in_purge.first == NULL);
    take_and_give(20);
    use();
}

static void child_has_all_shards(void)
{
    struct worker churners[CHURNERS];
    heap_own();
    fill(NULL);
    span_spread(PROCESSORS);
    for (int i = 0; i < CHURNERS; i++) {
        worker_start(&churners[i]);
        worker_begin(&churners[i], churn, NULL);
    }
    for (int i = 0; i < FORKS; i++)
        fork_and(use_shards);
    enough = true;
    for (int i = 0; i < CHURNERS; i++) {
        worker_wait(&churners[i]);
        worker_stop(&churners[i]);
    }
    use_shards();
}

/* Without fork handlers, its thread still has the number that it had in the parent. */
static void cloned_child_keeps_its_heap(void)
{
    struct heap *own = heap_own();
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        bool reclaimed = life_reclaim(own);
        _exit(reclaimed || own->tls != &thread_view ? 1 : 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(child_inherits_heaps),
        UNIT_TEST(child_inherits_frozen_heaps),
        UNIT_TEST(child_keeps_its_own_frozen_heap),
        UNIT_TEST(heap_of_a_busy_door_is_quarantined),
        UNIT_TEST(child_inherits_heaps_at_whose_door_someone_waits),
        UNIT_TEST(child_inherits_heaps_of_ending_threads),
        UNIT_TEST(child_inherits_what_was_put_off),
        UNIT_TEST(heap_whose_word_is_gone_is_quarantined),
        UNIT_TEST(other_handlers_may_allocate),
        UNIT_TEST(budget_survives),
        UNIT_TEST(children_may_fork),
        UNIT_TEST(child_has_all_shards),
        UNIT_TEST(cloned_child_keeps_its_heap),
    };
    return cmocka_run_group_tests_name("heap_fork", tests, NULL, NULL);
}
