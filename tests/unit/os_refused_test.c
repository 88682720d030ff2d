/* os/os.h and os/handler.h: random numbers, sleeping, signals kept back, and what becomes of them where a sandbox refuses calls. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "os/handler.h"
#include "os/os.h"
#include "process.h"
#include "refused_call.h"

enum { LONG_MS = 1000 * 1000 };

static void random_numbers_differ(void)
{
    CHECK(os_random() != os_random());
    CHECK(!os_is_secure());
}

/* In a sandbox, or before there is entropy: none is a function of another that is known. */
static void random_numbers_differ_by_themselves(void)
{
    enum { COUNT = 1000 };
    static uint64_t numbers[COUNT];
    unsigned ones = 0;
    if (!calls_can_be_refused(__func__))
        return;
    refuse_call(SYS_getrandom, EPERM);
    for (size_t i = 0; i < COUNT; i++) {
        numbers[i] = os_random();
        ones += count_ones64(numbers[i]);
        for (size_t before = 0; before < i; before++)
            CHECK(numbers[before] != numbers[i] && (numbers[before] | 1) != (numbers[i] | 1));
    }
    CHECK(ones > COUNT * 31 && ones < COUNT * 33);
}

static void sleeps_for_its_time(void)
{
    errno = 66;
    uint64_t before = process_now_ms();
    os_sleep(1100);
    uint64_t took = process_now_ms() - before;
    CHECK(took >= 1099 && took < LONG_MS);
    CHECK(errno == 66);
}

static atomic_bool sleeps;

static void *sleep_long(void *took)
{
    uint64_t before = process_now_ms();
    sleeps = true;
    os_sleep(500);
    *(uint64_t *)took = process_now_ms() - before;
    return NULL;
}

/* FUTEX_WAKE_OP wakes somebody, if there is anybody. */
static void whoever_sets_a_bit_wakes_no_sleeper(void)
{
    uintptr_t word = 5;
    uint64_t took = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sleep_long, &took) == 0);
    while (!sleeps)
        usleep(1000);
    usleep(50000);
    for (int i = 0; i < 10; i++) {
        word = 5;
        CHECK(os_set_bit(&word, 5, 4) && word == 21);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(took >= 499);
}

static void sleeps_where_only_locks_may(void)
{
    if (!calls_can_be_refused(__func__))
        return;
    refuse_call(SYS_nanosleep, EPERM);
    refuse_call(SYS_clock_nanosleep, EPERM);
    sleeps_for_its_time();
}

/* A block would be lost in a move that is begun and forbidden. */
static void what_is_forbidden_is_not_tried(void)
{
    if (!calls_can_be_refused(__func__))
        return;
    const size_t page = os_page_size();
    char *at = os_reserve(NULL, 8 * page);
    CHECK(at != NULL && os_commit(at, 8 * page) && os_can_move(at, 8 * page));
    refuse_call(SYS_mremap, EPERM);
    CHECK(!os_can_move(at, 8 * page));
}

/* What a filter has refused is not put back: nothing was read. */
static void signals_stay_as_they_are_where_they_cannot_be_kept_back(void)
{
    sigset_t before;
    sigset_t after;
    CHECK(sigemptyset(&before) == 0 && sigaddset(&before, SIGUSR1) == 0 && sigprocmask(SIG_BLOCK, &before, NULL) == 0);
    struct os_signals kept = os_block_signals();
    CHECK(kept.blocked && sigprocmask(SIG_BLOCK, NULL, &after) == 0);
    CHECK(sigismember(&after, SIGTERM) == 1 && sigismember(&after, SIGSYS) == 0);
    os_unblock_signals(kept);
    CHECK(sigprocmask(SIG_BLOCK, NULL, &after) == 0);
    CHECK(sigismember(&after, SIGTERM) == 0 && sigismember(&after, SIGUSR1) == 1);
    if (!calls_can_be_refused(__func__))
        return;
    refuse_call(SYS_rt_sigprocmask, EPERM);
    CHECK(!os_block_signals().blocked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(random_numbers_differ),
        UNIT_TEST(random_numbers_differ_by_themselves),
        UNIT_TEST(sleeps_for_its_time),
        UNIT_TEST(whoever_sets_a_bit_wakes_no_sleeper),
        UNIT_TEST(sleeps_where_only_locks_may),
        UNIT_TEST(what_is_forbidden_is_not_tried),
        UNIT_TEST(signals_stay_as_they_are_where_they_cannot_be_kept_back),
    };
    return cmocka_run_group_tests_name("os_refused", tests, NULL, NULL);
}
