/* heap/fork.h: the child sees every heap whole, and inherits those of the threads that it does not have. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/meta.h"
#include "base/claim.h"
#include "forks.h"
#include "heap/events.h"
#include "heap/fork.h"
#include "heap/freeze.h"
#include "heap/magazine.h"
#include "heap/start.h"
#include "span/shards.h"
#include "worker.h"

static void inherit(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(forks_heap->tls == NULL && !forks_heap->quarantined);
    forks_use_and_free(NULL);
    hak_malloc_trim(0);
    CHECK(forks_heap->shelf[FORK_CLASS].blocks_out == 0);
    CHECK(life_birth(&word) == forks_heap);
    CHECK(word == &forks_heap->view);
    CHECK(forks_heap->frozen == FREEZE_NONE);
}

static void child_inherits_heaps(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, forks_fill, NULL);
    forks_and(inherit);
    CHECK(*forks_heap->tls == &forks_heap->twin);
    worker_run(&worker, forks_use_and_free, NULL);
    CHECK(*forks_heap->tls == &forks_heap->view);
    worker_stop(&worker);
}

/* What a thief has left has holes. */
static void inherit_holes(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(life_birth(&word) == forks_heap);
    CHECK(forks_heap->frozen == FREEZE_NONE);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        for (size_t i = 1; i <= magazine_count(forks_heap, class); i++)
            CHECK(forks_heap->shelf[class].slots[i] != NULL);
    for (int i = 0; i < 1000; i++)
        CHECK(magazine_pop(forks_heap, FORK_CLASS) != NULL);
}

static void child_inherits_frozen_heaps(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, forks_fill, NULL);
    CHECK(freeze_begin(forks_heap));
    CHECK(freeze_empty(forks_heap) > 0);
    freeze_end(forks_heap);
    forks_and(inherit_holes);
    CHECK(forks_heap->frozen == FREEZE_HOLES);
    worker_run(&worker, forks_use_and_free, NULL);
    worker_stop(&worker);
}

static struct heap *caller;

static void use_own_again(void)
{
    CHECK(view_load()->heap == caller);
    forks_use_and_free(NULL);
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
    forks_fill(NULL);
    worker_start(&worker);
    worker_run(&worker, freeze_caller, NULL);
    forks_and(use_own_again);
    forks_use_and_free(NULL);
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
    forks_fill(unused);
    heap_events.heartbeat = wait_in_door;
    while (heap_events.heartbeat != NULL)
        hak_free(hak_malloc(SMALL_MAX));
}

static void leave_alone(void)
{
    CHECK(forks_heap->quarantined);
    CHECK(forks_heap->tls == NULL);
    CHECK(!freeze_begin(forks_heap));
    hak_malloc_trim(0);
    struct view *word = STATIC_VIEW(unborn);
    CHECK(life_birth(&word) != forks_heap);
}

static void use_and_leave_alone(void)
{
    forks_use_and_free(NULL);
    leave_alone();
}

/* Its thread ended without a word, and its stack is unmapped already; the kernel does not yet say that it is gone. */
static void heap_whose_word_is_gone_is_quarantined(void)
{
    heap_own();
    struct view **word = word_on_a_stack();
    forks_heap = heap_other(word);
    unmap_stack(word);
    forks_and(leave_alone);
    CHECK(!forks_heap->quarantined);
}

/* Its thread ended without a word, and another got its stack and forks: the word there is that one's now. */
static void heap_that_had_the_same_word_is_another_threads(void)
{
    struct view *word;
    caller = heap_own();
    forks_heap = heap_other(&word);
    forks_heap->tls = &thread_view;
    forks_and(leave_alone);
    CHECK(view_load() == &caller->view && !forks_heap->quarantined);
    forks_heap->tls = &word;
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
    forks_and(use_and_leave_alone);
    CHECK(!forks_heap->quarantined);
    sem_post(&go_on);
    worker_wait(&worker);
    worker_run(&worker, forks_use_and_free, NULL);
    worker_stop(&worker);
}

static int handlers;

static void allocate_in_handler(void)
{
    void *small = hak_malloc(FORK_SIZE);
    void *large = hak_malloc(200000);
    CHECK(small != NULL && large != NULL);
    hak_free(small);
    hak_free(large);
    handlers++;
}

static void nothing_more(void)
{
    CHECK(handlers == 2);
    forks_use_and_free(NULL);
}

static bool is_registered_first;

static void allocate_if_first(void)
{
    if (is_registered_first)
        allocate_in_handler();
}

/* Before the allocator's handlers: its prepare runs after theirs, its others before theirs. */
__attribute__((constructor(101))) static void register_first(void)
{
    (void)pthread_atfork(allocate_if_first, allocate_if_first, allocate_if_first);
}

static void fork_with_handlers(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, forks_fill, NULL);
    forks_and(nothing_more);
    CHECK(handlers == 2);
    worker_run(&worker, forks_use_and_free, NULL);
    worker_stop(&worker);
}

static void handlers_of_before_may_allocate(void)
{
    is_registered_first = true;
    fork_with_handlers();
}

static void handlers_of_later_may_allocate(void)
{
    CHECK(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler) == 0);
    fork_with_handlers();
}

static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool enough;

static void lock_programs(void)
{
    pthread_mutex_lock(&program_lock);
}

static void unlock_programs(void)
{
    pthread_mutex_unlock(&program_lock);
}

static void allocate_under_programs_lock(void *unused)
{
    (void)unused;
    while (!atomic_load(&enough)) {
        lock_programs();
        for (size_t size = 1; size < 2000; size++)
            hak_free(hak_malloc(size));
        unlock_programs();
    }
}

static void nothing_is_locked(void)
{
    CHECK(pthread_mutex_trylock(&program_lock) == 0);
}

/* Of a program that registers before it allocates: when they run the allocator has not stopped anybody yet. */
static void handlers_may_wait_for_who_allocates(void)
{
    enum { TIMES = 50 };
    struct worker worker;
    CHECK(pthread_atfork(lock_programs, unlock_programs, unlock_programs) == 0);
    worker_start(&worker);
    worker_begin(&worker, allocate_under_programs_lock, NULL);
    for (int i = 0; i < TIMES; i++)
        forks_and(nothing_is_locked);
    atomic_store(&enough, true);
    worker_wait(&worker);
    worker_stop(&worker);
}

static void count_bytes(void)
{
    int64_t before = caller->granted - caller->view.budget;
    hak_free(hak_malloc(FORK_SIZE));
    CHECK(caller->granted - caller->view.budget == before + FORK_SIZE);
}

static void budget_survives(void)
{
    struct worker worker;
    caller = heap_own();
    forks_fill(NULL);
    worker_start(&worker);
    worker_run(&worker, forks_fill, NULL);
    int64_t before = forks_heap->granted - forks_heap->view.budget;
    for (int i = 0; i < 5; i++)
        forks_and(count_bytes);
    CHECK(forks_heap->granted - forks_heap->view.budget == before);
    worker_stop(&worker);
}

static void fork_again(void)
{
    forks_and(forks_use);
    forks_use();
}

static void children_may_fork(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, forks_fill, NULL);
    forks_and(fork_again);
    worker_stop(&worker);
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

/* By a signal handler that comes when the locks are taken: those are the outer fork's. */
static void a_fork_may_come_into_another(void)
{
    heap_own();
    fork_prepare();
    fork_prepare();
    fork_parent();
    CHECK(lock_passes());
    hak_free(hak_malloc(100));
    fork_parent();
    CHECK(!lock_passes() && !fork_holds_any_lock() && !lock_is_taken(&meta_lock) && !lock_is_taken(&init_lock));
    fork_prepare();
    fork_prepare();
    fork_child();
    CHECK(!lock_passes() && !fork_holds_any_lock());
    fork_child(); /* the outer one, which the handler has returned to */
    fork_prepare();
    CHECK(lock_passes());
    fork_parent();
    CHECK(!lock_passes());
}

/* Between the handlers of a fork another library's allocates, and a signal comes in the middle of that: what is half done is not to be
 * used. */
static void a_handler_sees_what_a_passed_lock_guards(void)
{
    struct heap *own = heap_own();
    char *block = hak_malloc(100);
    fork_prepare();
    own->in_door = DOOR_INSIDE;
    lock_take(&shards_pool()->lock);
    CHECK(fork_holds_any_lock());
    errno = 0;
    CHECK(hak_malloc(1 << 20) == NULL && errno == ENOMEM);
    CHECK(hak_malloc(30000) == NULL);
    fork_prepare(); /* the handler forks: neither its parent nor its child undoes what the outer one has done */
    fork_parent();
    CHECK(lock_passes() && lock_is_passed());
    fork_prepare();
    fork_child();
    CHECK(lock_passes() && lock_is_passed());
    lock_drop(&shards_pool()->lock);
    own->in_door = DOOR_OUTSIDE;
    CHECK(!fork_holds_any_lock());
    hak_free(hak_malloc(1 << 20));
    fork_parent();
    CHECK(!lock_passes() && !fork_holds_any_lock() && !lock_is_taken(&meta_lock) && !lock_is_taken(&init_lock));
    hak_free(block);
}

/* Who was at it was a thread of an ancestor, whose number a descendant may have later, or in another namespace. */
static void a_claim_of_an_ancestor_is_nobodys(void)
{
    uint32_t word = 0;
    heap_own();
    CHECK(claim_take(&word) && !claim_take(&word) && claim_is_taken(&word));
    fork_prepare();
    fork_child();
    CHECK(!claim_is_taken(&word) && claim_take(&word) && claim_is_taken(&word));
    claim_drop(&word);
    CHECK(!claim_is_taken(&word));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(child_inherits_heaps),
        UNIT_TEST(child_inherits_frozen_heaps),
        UNIT_TEST(child_keeps_its_own_frozen_heap),
        UNIT_TEST(heap_that_had_the_same_word_is_another_threads),
        UNIT_TEST(heap_of_a_busy_door_is_quarantined),
        UNIT_TEST(heap_whose_word_is_gone_is_quarantined),
        UNIT_TEST(handlers_of_before_may_allocate),
        UNIT_TEST(handlers_of_later_may_allocate),
        UNIT_TEST(handlers_may_wait_for_who_allocates),
        UNIT_TEST(budget_survives),
        UNIT_TEST(children_may_fork),
        UNIT_TEST(a_fork_may_come_into_another),
        UNIT_TEST(a_handler_sees_what_a_passed_lock_guards),
        UNIT_TEST(a_claim_of_an_ancestor_is_nobodys),
        UNIT_TEST(cloned_child_keeps_its_heap),
    };
    return cmocka_run_group_tests_name("heap_fork", tests, NULL, NULL);
}
