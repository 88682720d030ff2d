/* learn/learn.h: the learner of a process on its heartbeats. */
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/fail.h"
#include "config/knobs.h"
#include "config/policy.h"
#include "fake_os.h"
#include "hakmem.h"
#include "heap/events.h"
#include "heaps.h"
#include "learn/decisions.h"
#include "learn/learn.h"
#include "learn/learner.h"
#include "process.h"
#include "span/span.h"
#include "worker.h"

enum { BLOCKS = 100, BLOCK = 1 << 20, PAGE = 4096, BEAT = 32 << 20, BEAT_MS = 5, ROUNDS_MOST = 400 };

static uint64_t now_ms = 100000;

static void tick(struct heap *heap)
{
    fake_clock_set(now_ms += BEAT_MS);
    learn_beat(heap);
}

static void start(enum learn learn)
{
    policy.heartbeat_bytes = BEAT;
    policy.guard_bytes = 0;
    policy.purger = false; /* ThreadSanitizer allows no threads in a fork's child */
    policy.learn = learn;
    policy.learn_parts = LEARN_ALL;
    fake_clock_set(now_ms);
    fake_os_refuse(FAKE_RANDOM, 1, FAKE_EVERY);
    learn_start();
    heap_events.heartbeat = tick;
    heap_events.forked = learn_forked;
}

/* More large blocks in turn than the BigCache may keep: each round has page faults, until it may keep more. An epoch is several
 * rounds. */
static void play_round(void)
{
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(BLOCK);
        for (size_t at = 0; at < BLOCK; at += PAGE)
            *(volatile char *)(blocks[i] + at) = 1;
    }
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    (void)span_purge_all();
}

static struct learn_summary summary_now(void)
{
    struct learn_summary summary;
    learn_summary(&summary);
    return summary;
}

/* Until so many epochs have been. */
static struct learn_summary play_until(uint64_t epochs)
{
    int rounds = 0;
    for (; summary_now().epochs < epochs && rounds < ROUNDS_MOST; rounds++)
        play_round();
    CHECK(rounds < ROUNDS_MOST);
    return summary_now();
}

static bool is_as_the_mode_says(void)
{
    struct arm arm;
    arm_of_knobs(&arm);
    return arm.count == 0;
}

static void learns_to_keep_more(void)
{
    start(LEARN_ON);
    uint64_t before = knob_get(KNOB_BIGCACHE_BYTES, 0);
    struct learn_summary summary = {0};
    for (int rounds = 0; rounds < ROUNDS_MOST && summary.changes == 0; rounds++) {
        play_round();
        summary = summary_now();
    }
    CHECK(summary.runs == 1 && summary.matches > 0 && summary.changes > 0 && summary.arms >= 2);
    CHECK(learn_show_best());
    CHECK(knob_get(KNOB_BIGCACHE_BYTES, 0) > before);
    /* Other threads go on until the process is gone: what is being saved stays in force. */
    uint64_t epochs = summary_now().epochs;
    for (int rounds = 0; rounds < 20; rounds++)
        play_round();
    CHECK(summary_now().epochs == epochs && knob_get(KNOB_BIGCACHE_BYTES, 0) > before);
    learn_go_on();
    play_round();
    (void)play_until(3); /* and goes on with that */
    CHECK(knob_get(KNOB_BIGCACHE_BYTES, 0) > before);
}

enum { RECORDS = 64, RECORDS_MOST = 160, RECORD = 8192, EPOCH_BEATS = 8 };

static unsigned beats;        /* since the last epoch's end */
static unsigned beats_least;  /* of an epoch */

static void tick_and_count(struct heap *heap)
{
    uint64_t before = summary_now().epochs;
    tick(heap);
    beats++;
    if (summary_now().epochs == before)
        return;
    beats_least = beats < beats_least ? beats : beats_least;
    beats = 0;
}

/* Wide magazines hold what most rounds take. In the others there are refills, by which other values take effect. */
static void play_records(void)
{
    static void *records[RECORDS_MOST];
    static unsigned round;
    unsigned count = round++ % 16 == 0 ? RECORDS_MOST : RECORDS;
    for (unsigned i = 0; i < count; i++)
        records[i] = hak_malloc(RECORD);
    for (unsigned i = 0; i < count; i++)
        hak_free(records[i]);
}

static void a_trial_that_has_lost_is_ended(void)
{
    hak_free(hak_malloc(RECORD)); /* so that there are size classes */
    start(LEARN_ON);
    knob_set(KNOB_MAGAZINE_BYTES, (uint32_t)size_class_of(RECORD), 1 << 20);
    knob_set(KNOB_THREAD_CACHE_BYTES, 0, 64 << 20);
    heap_events.heartbeat = tick_and_count;
    beats_least = UINT_MAX;
    while (summary_now().epochs < 3)
        play_records();
    CHECK(beats_least >= EPOCH_BEATS);
    while (summary_now().matches == 0)
        play_records();
    CHECK(beats_least < EPOCH_BEATS && !is_as_the_mode_says()); /* the mode's values were tried, and cost many times as much */
}

/* Of a program that only frees just now no cost can be told: it is one for each MiB that is requested. */
static void a_trial_without_requests_goes_on(void)
{
    struct heap *heap = heap_own();
    start(LEARN_ON);
    knob_set(KNOB_MAGAZINE_BYTES, (uint32_t)size_class_of(RECORD), 1 << 20);
    while (!is_as_the_mode_says())
        play_records();
    uint64_t before = summary_now().epochs;
    for (int i = 0; i < EPOCH_BEATS; i++) {
        heap->counts->of[COUNT_FLUSHED] += 1000000000;
        tick(heap);
    }
    CHECK(summary_now().epochs == before);
    while (summary_now().epochs == before)
        play_records();
}

enum { DELAY_MS = 1000, SLOW_BEAT_MS = 50, SLOW_ROUNDS = 10 << 20, SWITCHES = 4 };

static unsigned switches; /* to another time */

/* No epoch ends before what is in force since then shows. */
static void tick_slowly(struct heap *heap)
{
    static uint64_t in_force;
    static uint64_t switched_ms;
    uint64_t before = summary_now().epochs;
    fake_clock_set(now_ms += SLOW_BEAT_MS);
    learn_beat(heap);
    CHECK(summary_now().epochs == before || now_ms - switched_ms >= DELAY_MS);
    uint64_t now_in_force = knob_get(KNOB_PURGE_MS, 0);
    if (in_force != 0 && now_in_force != in_force) {
        switched_ms = now_ms;
        switches++;
    }
    in_force = now_in_force;
}

static void after_the_trial_of_a_time_it_settles_too(void)
{
    hak_free(hak_malloc(RECORD));
    start(LEARN_ON);
    fake_os_refuse(FAKE_RANDOM | FAKE_USAGE, 1, FAKE_EVERY); /* the clock is not that of the work: most of its time would be pauses */
    knob_set(KNOB_PURGE_MS, 0, DELAY_MS / 2);
    heap_events.heartbeat = tick_slowly;
    for (int rounds = 0; rounds < SLOW_ROUNDS && switches < SWITCHES; rounds++)
        play_records();
    CHECK(switches == SWITCHES);
}

static void observing_sets_nothing(void)
{
    start(LEARN_OBSERVE);
    struct learn_summary summary = play_until(40);
    CHECK(summary.runs == 2 && is_as_the_mode_says() && summary.matches == 0);
    struct decision decisions[DECISIONS_KEPT];
    size_t count = decisions_copy(decisions, DECISIONS_KEPT);
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++)
        CHECK(!decisions[i].applied);
}

static void off_is_off(void)
{
    start(LEARN_OFF);
    for (int i = 0; i < 20; i++)
        play_round();
    CHECK(summary_now().epochs == 0 && summary_now().runs == 0 && is_as_the_mode_says());
}

static void another_mode_begins_anew(void)
{
    start(LEARN_ON);
    (void)play_until(10);
    CHECK(hak_mode_set("fast") == 0);
    policy.heartbeat_bytes = BEAT;
    policy.learn = LEARN_ON;
    play_round();
    CHECK(summary_now().epochs < 3 && is_as_the_mode_says());
    policy.learn = LEARN_OFF;
    play_round();
    CHECK(summary_now().runs == 0);
}

/* The learner then stops in the child too; what it had learned is not in force. */
static void a_fork_after_a_switch_keeps_the_mode(void)
{
    start(LEARN_ON);
    (void)play_until(20);
    CHECK(hak_mode_set("minimal") == 0);
    knob_set(KNOB_PURGE_MS, 0, 77);
    pid_t child = fork();
    if (child == 0) {
        play_round();
        _exit(is_as_the_mode_says() && knob_get(KNOB_PURGE_MS, 0) != 77 ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void the_same_mode_begins_anew_too(void)
{
    start(LEARN_ON);
    uint64_t before = play_until(10).epochs;
    CHECK(hak_mode_set(policy_mode_name()) == 0);
    policy.heartbeat_bytes = BEAT;
    policy.learn = LEARN_ON;
    play_round();
    CHECK(summary_now().epochs < before);
}

/* As an epoch's end does while another thread switches the mode. */
static void what_came_late_is_undone(void)
{
    start(LEARN_ON);
    (void)play_until(3);
    CHECK(hak_mode_set("fast") == 0);
    policy.heartbeat_bytes = BEAT;
    policy.learn = LEARN_ON;
    knob_set(KNOB_PURGE_MS, 0, 77);
    CHECK(!learn_show_best()); /* and would not be saved */
    play_round();
    CHECK(knob_get(KNOB_PURGE_MS, 0) != 77);
}

static atomic_uint entered;
static atomic_uint left;
static atomic_int player;

static void tick_and_tell(struct heap *heap)
{
    atomic_fetch_add(&entered, 1);
    tick(heap);
    atomic_fetch_add(&left, 1);
}

static void play_first_epoch(void *unused)
{
    (void)unused;
    atomic_store(&player, (int)syscall(SYS_gettid));
    (void)play_until(1);
}

/* Does it sleep, rather than wait for a processor? */
static bool player_sleeps(void)
{
    char path[64];
    char text[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&player));
    CHECK(process_read(path, text, sizeof text) > 0);
    const char *state = strrchr(text, ')');
    return state != NULL && state[2] == 'S';
}

/* It has come to the learner, and does not leave it. */
static void wait_for_who_is_stuck(void)
{
    unsigned seen = 0;
    for (int same = 0; same < 100; usleep(1000)) {
        bool is_same = atomic_load(&entered) == seen && atomic_load(&left) != seen && player_sleeps();
        same = is_same ? same + 1 : 0;
        seen = atomic_load(&entered);
    }
}

/* Who was at work is not there in the child, and what was in force may have been on trial. */
static void check_forked_meanwhile(void)
{
    knob_set(KNOB_PURGE_MS, 0, 77);
    pid_t child = fork();
    if (child == 0)
        _exit(is_as_the_mode_says() ? 0 : 1);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Whatever is in force then: it may be on trial. */
static void what_is_in_force_while_the_learner_works_is_not_saved(void)
{
    char path[] = "/tmp/hakmem-learn-XXXXXX";
    struct worker worker;
    CHECK(mkdtemp(path) != NULL && rmdir(path) == 0 && mkfifo(path, 0600) == 0 && fail_report_to(path));
    start(LEARN_ON);
    policy_mode = MODE_RESEARCH; /* each epoch is reported: to a pipe that nobody reads from */
    heap_events.heartbeat = tick_and_tell;
    worker_start(&worker);
    worker_begin(&worker, play_first_epoch, NULL);
    wait_for_who_is_stuck();
    CHECK(!learn_show_best());
    check_forked_meanwhile();
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    CHECK(reader >= 0);
    worker_wait(&worker);
    CHECK(learn_show_best());
    learn_go_on();
    worker_stop(&worker);
    CHECK(unlink(path) == 0);
}

/* With what is known, and whatever of a trial was in force. */
static void a_forked_child_begins_anew(void)
{
    start(LEARN_ON);
    struct learn_summary before = play_until(20);
    pid_t child = fork();
    if (child == 0) {
        play_round();
        struct learn_summary summary = summary_now();
        _exit(summary.epochs < before.epochs && summary.changes == before.changes ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(play_until(before.epochs + 3).runs == 1);
}

/* Of which an hour of its parent's is no part. */
static void a_childs_time_is_its_own(void)
{
    start(LEARN_ON);
    (void)play_until(3);
    fake_clock_set(now_ms += 3600 * 1000);
    pid_t child = fork();
    if (child == 0)
        _exit(play_until(1).learn_ms < 3600 * 1000 ? 0 : 1);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(play_until(summary_now().epochs + 1).learn_ms > 3600 * 1000);
}

static bool is_over;

static void *beat_often(void *unused)
{
    while (!load_relaxed(&is_over))
        hak_free(hak_malloc(300000));
    return unused;
}

static void beat_by_real_time(struct heap *heap)
{
    learn_beat(heap);
}

static void several_threads_beat(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    start(LEARN_ON);
    fake_clock_set(0);
    learn_start();
    heap_events.heartbeat = beat_by_real_time;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, beat_often, NULL) == 0);
    uint64_t end_ms = process_now_ms() + 30000;
    while (summary_now().epochs < 3 && process_now_ms() < end_ms)
        CHECK(summary_now().state < LEARNER_STATES);
    store_relaxed(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(summary_now().epochs >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(learns_to_keep_more),
        UNIT_TEST(a_trial_that_has_lost_is_ended),
        UNIT_TEST(a_trial_without_requests_goes_on),
        UNIT_TEST(after_the_trial_of_a_time_it_settles_too),
        UNIT_TEST(observing_sets_nothing),
        UNIT_TEST(off_is_off),
        UNIT_TEST(another_mode_begins_anew),
        UNIT_TEST(a_fork_after_a_switch_keeps_the_mode),
        UNIT_TEST(the_same_mode_begins_anew_too),
        UNIT_TEST(what_came_late_is_undone),
        UNIT_TEST(what_is_in_force_while_the_learner_works_is_not_saved),
        UNIT_TEST(a_forked_child_begins_anew),
        UNIT_TEST(a_childs_time_is_its_own),
        UNIT_TEST(several_threads_beat),
    };
    return cmocka_run_group_tests_name("learn", tests, NULL, NULL);
}
