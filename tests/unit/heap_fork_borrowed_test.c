/* heap/fork.h: an idle heap that a thread had taken for a while, to clean it or to put slabs there, is the child's. */
#include "unit.h"

#include "fake_os.h"
#include "forks.h"
#include "worker.h"

static struct heap *borrowed;

static void borrow_one(void *unused)
{
    (void)unused;
    borrowed = life_borrow();
    CHECK(borrowed != NULL && borrowed->idle_in == NULL);
}

static void inherit_borrowed(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(borrowed->idle_in != NULL);
    forks_use_and_free(NULL);
    CHECK(life_birth(&word) == borrowed);
    CHECK(borrowed->in_door == DOOR_OUTSIDE && borrowed->borrower == 0);
}

/* Another thread has it to clean it, or to put slabs there. */
static void child_inherits_borrowed_heaps(void)
{
    struct worker worker;
    heap_own();
    forks_fill(NULL);
    worker_start(&worker);
    for (int made = 0; made < 2; made++) {
        worker_run(&worker, borrow_one, NULL);
        forks_and(inherit_borrowed);
        CHECK(borrowed->idle_in == NULL);
        life_return(borrowed);
    }
    forks_and(forks_use);
    worker_stop(&worker);
}

static void leave_to_who_has_it(void)
{
    CHECK(borrowed->idle_in == NULL);
    life_return(borrowed);
    CHECK(borrowed->idle_in != NULL);
}

/* A signal handler forks in the middle of that: its child goes on with it. */
static void what_the_forking_thread_has_borrowed_stays_its(void)
{
    struct heap *own = heap_own();
    borrow_one(NULL);
    store_relaxed(&own->in_door, (uint32_t)DOOR_INSIDE);
    forks_and(leave_to_who_has_it);
    store_relaxed(&own->in_door, (uint32_t)DOOR_OUTSIDE);
    life_return(borrowed);
}

static struct heap *ended;
static sem_t in_purge;
static pthread_t cleaner;

static void stop_in_purge(void)
{
    fake_os_before_purge(NULL);
    sem_post(&in_purge);
    CHECK_SOON(lock_is_wanted(&ended->lock));
}

/* Pages of its slabs have no live block. */
static void fill_and_free(void *unused)
{
    static char *more[5000];
    forks_fill(unused);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        more[i] = hak_malloc(FORK_SIZE);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        hak_free(more[i]);
}

static void *clean_the_ended(void *unused)
{
    CHECK(life_purge(ended) > 0);
    return unused;
}

static void inherit_cleaned(void)
{
    struct view *word = STATIC_VIEW(unborn);
    CHECK(ended->idle_in != NULL);
    forks_use_and_free(NULL);
    hak_malloc_trim(0);
    CHECK(ended->shelf[FORK_CLASS].blocks_out == 0);
    CHECK(life_birth(&word) == ended);
}

/* The heap of an ended thread, whose holes are being given back. */
static void child_inherits_what_is_being_cleaned(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, fill_and_free, NULL);
    worker_stop(&worker);
    ended = forks_heap;
    sem_init(&in_purge, 0, 0);
    fake_os_before_purge(stop_in_purge);
    CHECK(pthread_create(&cleaner, NULL, clean_the_ended, NULL) == 0);
    sem_wait(&in_purge);
    forks_and(inherit_cleaned);
    CHECK(pthread_join(cleaner, NULL) == 0);
    CHECK(ended->idle_in != NULL);
    inherit_cleaned();
}

static void lock_ended(void *unused)
{
    (void)unused;
    lock_take(&ended->lock);
}

static void unlock_ended(void *unused)
{
    (void)unused;
    lock_drop(&ended->lock);
}

static void *be_born(void *unused)
{
    hak_free(hak_malloc(FORK_SIZE));
    CHECK(view_load()->heap == ended && ended->borrower == 0);
    return unused;
}

/* A new thread gets it; a fork may come before it has it. */
static void what_is_being_lent_is_borrowed(void)
{
    struct worker first;
    struct worker holder;
    pthread_t born;
    heap_own();
    worker_start(&holder);
    worker_run(&holder, forks_fill, NULL);
    worker_start(&first);
    worker_run(&first, forks_fill, NULL);
    ended = forks_heap;
    worker_stop(&first);
    worker_run(&holder, lock_ended, NULL);
    CHECK(pthread_create(&born, NULL, be_born, NULL) == 0);
    CHECK_SOON(lock_is_wanted(&ended->lock));
    lock_take(&life_lock);
    CHECK(ended->idle_in == NULL && ended->borrower != 0);
    lock_drop(&life_lock);
    worker_run(&holder, unlock_ended, NULL);
    CHECK(pthread_join(born, NULL) == 0);
    worker_stop(&holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(child_inherits_borrowed_heaps),
        UNIT_TEST(what_the_forking_thread_has_borrowed_stays_its),
        UNIT_TEST(child_inherits_what_is_being_cleaned),
        UNIT_TEST(what_is_being_lent_is_borrowed),
    };
    return cmocka_run_group_tests_name("heap_fork_borrowed", tests, NULL, NULL);
}
