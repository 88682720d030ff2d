/* heap/fork.h: forks that come at a moment when other threads are in the middle of something. */
#include "unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "forks.h"
#include "heap/freeze.h"
#include "heap/keeper.h"
#include "span/shards.h"
#include "step.h"
#include "worker.h"

static sem_t in_door;
static sem_t go_on;
static atomic_bool enough;
static atomic_bool may_end; /* of the visitor's signal handler, where it has one */
static struct worker visitor;

static void come_and_go(void *unused)
{
    forks_fill(unused);
    sem_post(&in_door);
    while (!atomic_load(&enough))
        hak_free(hak_malloc(FORK_SIZE));
}

/* All heaps are closed by now. */
static void wait_for_the_visitor(void)
{
    CHECK_SOON(load_relaxed(&forks_heap->in_door) == DOOR_WAITS);
}

/* But for one block, if its owner was about to free that. */
static void inherit_all(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(forks_heap->tls == NULL && !forks_heap->quarantined);
    forks_use_and_free(NULL);
    hak_malloc_trim(0);
    CHECK(forks_heap->shelf[FORK_CLASS].blocks_out <= 1);
    CHECK(life_birth(&word) == forks_heap && forks_heap->in_door == DOOR_OUTSIDE);
}

static void fork_among_visits(void (*part)(void))
{
    sem_init(&in_door, 0, 0);
    worker_start(&visitor);
    worker_begin(&visitor, come_and_go, NULL);
    sem_wait(&in_door);
    forks_and(part);
    atomic_store(&may_end, true);
    atomic_store(&enough, true);
    worker_wait(&visitor);
    worker_run(&visitor, forks_use_and_free, NULL);
    worker_stop(&visitor);
}

static void (*after_ours)(void);

static void run_after_ours(void)
{
    if (after_ours != NULL)
        after_ours();
}

/* Before the library's constructor: what is registered first runs last. */
__attribute__((constructor(101))) static void register_first(void)
{
    (void)pthread_atfork(run_after_ours, NULL, NULL);
}

/* Of a heap whose owner has come to its door and cannot enter, nothing is half done. */
static void child_inherits_heaps_at_whose_door_someone_waits(void)
{
    after_ours = wait_for_the_visitor;
    heap_own();
    fork_among_visits(inherit_all);
}

static sem_t may_return;

static void *fill_and_return(void *unused)
{
    forks_fill(unused);
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
    CHECK(forks_heap->tls == NULL && !forks_heap->quarantined && forks_heap->idle_in != NULL);
    forks_use_and_free(NULL);
    hak_malloc_trim(0);
    CHECK(forks_heap->shelf[FORK_CLASS].blocks_out == 0);
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
    forks_and(inherit_of_ending);
    CHECK(pthread_join(holder, NULL) == 0 && pthread_join(ending, NULL) == 0);
    inherit_of_ending();
}

static atomic_bool is_between;
static void *put_off;

/* The place of the block is taken, and nothing stands in it. */
static void stop_between(int signal)
{
    (void)signal;
    if (forks_heap->deferred_count != 1 || forks_heap->deferred[0] != NULL)
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
    forks_use_and_free(unused);
    CHECK(view_load()->heap == forks_heap && forks_heap->deferred_count == 0);
}

static void take_over(void)
{
    struct worker heir;
    CHECK(forks_heap->deferred_count == 1);
    worker_start(&heir);
    worker_run(&heir, take_its_place, NULL);
    worker_stop(&heir);
}

/* A handler of who waits at the door puts a free off, and the fork comes while it does: what is not there yet is no block. */
static void child_inherits_what_was_put_off(void)
{
    if (HAK_SANITIZED) {
        CANNOT_TRY("the sanitizers keep signals back");
        return;
    }
    after_ours = interrupt_the_visitor;
    forks_heap = heap_own();
    CHECK(signal(SIGTRAP, stop_between) != SIG_ERR && signal(SIGUSR1, free_step_by_step) != SIG_ERR);
    if (!step_begin()) {
        CANNOT_TRY("this processor is not stepped");
        return;
    }
    step_end();
    put_off = hak_malloc(FORK_SIZE);
    fork_among_visits(take_over);
}

enum { CHURNERS = 4, FORKS = 40, UNITS_MOST = 20, PROCESSORS = 64 };

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
    forks_use();
}

static void fork_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < FORKS; i++)
        forks_and(use_shards);
}

static void *fork_at_the_end(void *key)
{
    heap_own();
    CHECK(pthread_setspecific(*(pthread_key_t *)key, key) == 0);
    return NULL;
}

/* By a destructor that comes after the heap's: the thread has none any more. */
static void fork_without_a_heap(void)
{
    static pthread_key_t key;
    pthread_t thread;
    CHECK(pthread_key_create(&key, fork_often) == 0);
    CHECK(pthread_create(&thread, NULL, fork_at_the_end, &key) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void child_has_all_shards(void)
{
    struct worker churners[CHURNERS];
    heap_own();
    forks_fill(NULL);
    span_spread(PROCESSORS);
    for (int i = 0; i < CHURNERS; i++) {
        worker_start(&churners[i]);
        worker_begin(&churners[i], churn, NULL);
    }
    fork_often(NULL);
    fork_without_a_heap();
    enough = true;
    for (int i = 0; i < CHURNERS; i++) {
        worker_wait(&churners[i]);
        worker_stop(&churners[i]);
    }
    use_shards();
}

static void start_checks(void *unused)
{
    (void)unused;
    CHECK(hak_check_start() == 0);
}

static bool somebody_waits_in_the_door(void)
{
    bool waits = false;
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        waits |= load_relaxed(&heap->in_door) == DOOR_WAITS;
    return waits;
}

static void start_checks_meanwhile(void)
{
    worker_begin(&visitor, start_checks, NULL);
    CHECK_SOON(somebody_waits_in_the_door());
}

static void use_without_a_keeper(void)
{
    CHECK(keeper_now() == NULL);
    forks_use();
}

/* Another thread turns check mode on while a fork is under way, which has not locked what that guards. */
static void a_keeper_waits_for_a_fork(void)
{
    after_ours = start_checks_meanwhile;
    heap_own();
    worker_start(&visitor);
    worker_run(&visitor, forks_fill, NULL); /* it has a heap */
    forks_fill(NULL);
    forks_and(use_without_a_keeper);
    worker_wait(&visitor);
    CHECK(keeper_now() != NULL);
    forks_use();
    worker_stop(&visitor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(child_inherits_heaps_at_whose_door_someone_waits),
        UNIT_TEST(child_inherits_heaps_of_ending_threads),
        UNIT_TEST(child_inherits_what_was_put_off),
        UNIT_TEST(child_has_all_shards),
        UNIT_TEST(a_keeper_waits_for_a_fork),
    };
    return cmocka_run_group_tests_name("heap_fork_moment", tests, NULL, NULL);
}
