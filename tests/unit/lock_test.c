/* base/lock.h: exclusion, ownership, ranks. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/alone.h"
#include "base/lock.h"
#include "scale.h"

enum { THREADS = 8, ROUNDS = 100000 };

static struct lock lock = LOCK_INITIALIZER(LOCK_SPAN);
static struct lock lower = LOCK_INITIALIZER(LOCK_LIFE);
static struct lock sibling = LOCK_INITIALIZER(LOCK_SPAN);
static size_t counter;

static void *count(void *unused)
{
    for (size_t i = 0; i < scaled_work(ROUNDS); i++) {
        lock_take(&lock);
        CHECK(lock_is_mine(&lock));
        counter++;
        lock_drop(&lock);
        CHECK(!lock_is_mine(&lock));
    }
    return unused;
}

static void excludes(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(counter == THREADS * scaled_work(ROUNDS));
}

static void *find_it_taken(void *unused)
{
    CHECK(!lock_is_mine(&lock));
    return unused;
}

static void is_not_of_others(void)
{
    pthread_t thread;
    lock_take(&lock);
    CHECK(pthread_create(&thread, NULL, find_it_taken, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    lock_drop(&lock);
}

/* So that nobody need look at all of them. */
static void those_of_heaps_are_counted(void)
{
    struct lock heaps[2] = {{.rank = LOCK_HEAP}, {.rank = LOCK_HEAP}};
    lock_take(&lower);
    CHECK(!lock_may_be_of_heap());
    lock_take(&heaps[0]);
    lock_take_sibling(&heaps[1]);
    lock_drop(&heaps[0]);
    CHECK(lock_may_be_of_heap());
    lock_drop(&heaps[1]);
    lock_drop(&lower);
    CHECK(!lock_may_be_of_heap());
    lock_take(&heaps[0]); /* as if another thread had been about to */
    lock_after_fork();
    CHECK(!lock_may_be_of_heap());
}

static void *take_and_drop(void *unused)
{
    lock_take(&lock);
    lock_drop(&lock);
    return unused;
}

/* The one wakeup may go to a thread that a signal handler keeps from using it: the lock is free, and others sleep. */
static void wakes_without_being_woken(void)
{
    pthread_t thread;
    lock_take(&lock);
    CHECK(pthread_create(&thread, NULL, take_and_drop, NULL) == 0);
    while ((__atomic_load_n(&lock.word, __ATOMIC_RELAXED) & 1) == 0)
        usleep(1000);
    usleep(20000); /* it sleeps by now */
    __atomic_store_n(&lock.word, 0, __ATOMIC_RELEASE);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 30;
    CHECK(pthread_timedjoin_np(thread, NULL, &deadline) == 0);
    CHECK(lock.word == 0);
}

static void *take_and_keep_errno(void *unused)
{
    errno = 77;
    lock_take(&lock);
    CHECK(errno == 77);
    lock_drop(&lock);
    CHECK(errno == 77);
    return unused;
}

/* A thread that has to wait for the lock, in the kernel. */
static void run_against_lock(void *(*body)(void *unused))
{
    pthread_t thread;
    lock_take(&lock);
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
    while ((__atomic_load_n(&lock.word, __ATOMIC_RELAXED) & 1) == 0)
        ; /* until it does */
    lock_drop(&lock);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void keeps_errno(void)
{
    run_against_lock(take_and_keep_errno);
}

/* The process's only thread takes it in a way of its own. One that is made meanwhile waits for it all the same. */
static void is_taken_alone(void)
{
    CHECK(alone() == alone_is_told());
    run_against_lock(take_and_drop);
    CHECK(!alone());
    CHECK(lock.word == 0 && lock.waits == 1);
}

static void counts_who_waits(void)
{
    uint32_t before = lock.waits;
    (void)take_and_drop(NULL);
    CHECK(lock.waits == before);
    run_against_lock(take_and_drop);
    CHECK(lock.waits == before + 1);
}

static void passes_who_holds_all(void)
{
    lock_take(&lock);
    lock_pass_begin();
    CHECK(lock_passes() && !lock_is_passed());
    lock_take(&lock);
    CHECK(lock_is_passed());
    lock_drop(&lock);
    lock_take(&lower);
    lock_take_sibling(&lower);
    CHECK(!lock_is_mine(&lower));
    lock_drop(&lower);
    CHECK(lock_is_passed());
    lock_drop(&lower);
    CHECK(!lock_is_passed());
    lock_pass_end();
    CHECK(!lock_passes());
    CHECK(lock_is_mine(&lock));
    lock_drop(&lock);
}

static void take_twice(uintptr_t unused)
{
    (void)unused;
    lock_take_sibling(&lock);
    lock_take_sibling(&lock);
}

static void take_out_of_order(uintptr_t unused)
{
    (void)unused;
    lock_take(&lock);
    lock_take(&lower);
}

static void drop_what_is_free(uintptr_t unused)
{
    (void)unused;
    lock_drop(&lock);
}

static void ranks_are_checked(void)
{
    lock_take(&lower);
    lock_take(&lock);
    lock_take_sibling(&sibling);
    lock_drop(&sibling);
    lock_drop(&lock);
    lock_drop(&lower);
    if (!HAK_DEBUG)
        return;
    CHECK_DIES(take_twice, 0, "hakmem: fatal: internal: !lock_is_mine\\(lock\\), at .*lock.c:[0-9]+");
    CHECK_DIES(take_out_of_order, 0, "hakmem: fatal: internal: ranks_held >> lock->rank == 0, at .*lock.c:[0-9]+");
    CHECK_DIES(drop_what_is_free, 0, "hakmem: fatal: internal: lock_is_mine\\(lock\\), at .*lock.c:[0-9]+");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(excludes),         UNIT_TEST(is_not_of_others), UNIT_TEST(those_of_heaps_are_counted), UNIT_TEST(keeps_errno),
        UNIT_TEST(counts_who_waits), UNIT_TEST(is_taken_alone),
        UNIT_TEST(passes_who_holds_all), UNIT_TEST(ranks_are_checked),
        UNIT_TEST(wakes_without_being_woken),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
