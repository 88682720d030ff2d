/* heap/purger.h: what a look takes from sleeping threads, what it leaves alone, and when there is a purger. */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "config/policy.h"
#include "fake_os.h"
#include "forks.h"
#include "heap/freeze.h"
#include "heap/magazine.h"
#include "heap/purger.h"
#include "heap/sleeper.h"
#include "heaps.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "os/os.h"
#include "worker.h"

/* Of each slab's four blocks the first stays. */
enum { SIZE = 32768, COUNT = 1024, OF_SLAB = 4, DELAY_MS = 1000, START_MS = 5000 };

static char *blocks[COUNT];

static void make_blocks(void *heap)
{
    for (int i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = hak_malloc(SIZE)) != NULL);
        memset(blocks[i], i % 251, SIZE);
    }
    for (int i = 0; i < COUNT; i++)
        if (i % OF_SLAB != 0)
            hak_free(blocks[i]);
    *(struct heap **)heap = heap_own();
}

static void check_blocks(void)
{
    for (int i = 0; i < COUNT; i += OF_SLAB)
        for (size_t at = 0; at < SIZE; at++)
            CHECK(blocks[i][at] == (char)(i % 251));
}

static void visit_the_door(void *unused)
{
    (void)unused;
    hak_malloc_trim(0);
}

/* A worker that holds the blocks and sleeps, at a time that the test sets; there is no purger but the test. */
static struct heap *start_sleeper(struct worker *worker)
{
    struct heap *sleeper;
    policy.purger = false;
    policy.purge_ms = DELAY_MS;
    heap_own();
    fake_clock_set(START_MS);
    worker_start(worker);
    worker_run(worker, make_blocks, &sleeper);
    return sleeper;
}

static struct purger_look look_at(uint64_t ms)
{
    fake_clock_set(ms);
    return purger_look();
}

static void sleepers_give_back_their_holes(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    CHECK(look_at(START_MS + DELAY_MS).active >= 1);
    CHECK(sleeper->frozen == FREEZE_NONE && sleeper->hole_bytes < COUNT / OF_SLAB * 64 * KIB);
    struct purger_look second = look_at(START_MS + 2 * DELAY_MS);
    CHECK(second.active == 0 && second.given_back >= COUNT / OF_SLAB * 64 * KIB);
    CHECK(sleeper->frozen == FREEZE_HOLES && sleeper->hole_bytes >= COUNT / OF_SLAB * 64 * KIB);
    check_blocks();
    (void)look_at(START_MS + 4 * DELAY_MS); /* units that became free at the second look */
    CHECK(look_at(START_MS + 5 * DELAY_MS).given_back == 0);
    worker_run(&worker, make_blocks, &sleeper);
    CHECK(sleeper->frozen == FREEZE_NONE);
    worker_stop(&worker);
}

/* Others that collect what was sent to it leave the holes that it had itself. */
static void mail_that_others_collect_keeps_no_holes(void)
{
    enum { SENT = 9, LATE_MS = 200 }; /* whole letters */
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    CHECK(look_at(START_MS + DELAY_MS).active >= 1);
    for (int i = 0; i < SENT; i++)
        hak_free(blocks[i * OF_SLAB]);
    fake_clock_set(START_MS + DELAY_MS + LATE_MS);
    sleeper_collect(sleeper);
    CHECK(sleeper->frozen == FREEZE_HOLES && sleeper->inbox == NULL);
    CHECK(look_at(START_MS + 2 * DELAY_MS).given_back >= (COUNT / OF_SLAB - SENT) * 64 * KIB);
    worker_stop(&worker);
}

/* No heap of its own shows that there is much to give back. */
static void who_only_frees_what_others_allocated_has_heartbeats(void)
{
    struct worker worker;
    (void)start_sleeper(&worker);
    struct heap *own = heap_own();
    policy.heartbeat_bytes = 1 << 20;
    uint64_t before = own->counts->of[COUNT_HEARTBEATS];
    for (int i = 0; i < COUNT; i += OF_SLAB)
        hak_free(blocks[i]);
    CHECK(own->counts->of[COUNT_HEARTBEATS] - before >= 2);
    worker_stop(&worker);
}

static void those_awake_are_left_alone(void)
{
    struct worker worker;
    struct heap *awake = start_sleeper(&worker);
    for (int i = 1; i < 10; i++) {
        worker_run(&worker, visit_the_door, NULL);
        CHECK(look_at(START_MS + (uint64_t)i * DELAY_MS).active >= 1);
        CHECK(awake->frozen == FREEZE_NONE);
    }
    worker_stop(&worker);
}

static void ended_threads_give_back_theirs(void)
{
    struct worker worker;
    struct heap *ended = start_sleeper(&worker);
    worker_stop(&worker);
    (void)look_at(START_MS + DELAY_MS);
    CHECK(look_at(START_MS + 2 * DELAY_MS).given_back >= COUNT / OF_SLAB * 64 * KIB);
    CHECK(ended->hole_bytes >= COUNT / OF_SLAB * 64 * KIB);
    check_blocks();
    for (int i = 0; i < COUNT; i += OF_SLAB)
        hak_free(blocks[i]);
    hak_malloc_trim(0);
    CHECK(ended->hole_bytes == 0 && ended->units == 0);
}

/* Without a barrier nobody's magazines can be taken; what is free goes back all the same. */
static void without_a_barrier_free_units_go_back(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    char *large = hak_malloc(4 * MIB);
    memset(large, 1, 4 * MIB);
    hak_free(large);
    fake_os_refuse(FAKE_BARRIER, 1, FAKE_EVERY);
    size_t given_back = 0;
    for (int i = 1; i < 6; i++)
        given_back += look_at(START_MS + (uint64_t)i * DELAY_MS).given_back;
    CHECK(given_back >= 4 * MIB && sleeper->hole_bytes < COUNT / OF_SLAB * 64 * KIB);
    fake_os_obey();
    worker_stop(&worker);
}

/* Makes `bytes` of free units that may hold pages. */
static void make_dirty(size_t bytes)
{
    char *large = hak_malloc(bytes);
    CHECK(large != NULL);
    hak_free(large);
    large_evict_before(UINT64_MAX);
    CHECK(span_dirty_bytes() >= bytes);
}

static void much_starts_the_purger(void)
{
    struct heap *heap = heap_own();
    policy.heartbeat_bytes = 1 << 30; /* the test says when */
    make_dirty(8 * MIB);
    purger_consider(heap);
    CHECK(!os_service_runs());
    make_dirty(32 * MIB);
    policy.purger = false;
    purger_consider(heap);
    CHECK(!os_service_runs());
    policy.purger = true;
    fake_clock_set(START_MS);
    fake_os_refuse(FAKE_SERVICE, 1, FAKE_EVERY);
    purger_consider(heap);
    CHECK(!os_service_runs());
    fake_os_obey();
    purger_consider(heap);
    CHECK(!os_service_runs()); /* the kernel is asked again after a while */
    fake_clock_set(START_MS + DELAY_MS);
    purger_consider(heap);
    CHECK(os_service_runs());
    fake_clock_set(0);
}

static void free_all_blocks(void *unused)
{
    (void)unused;
    for (int i = 0; i < COUNT; i++)
        if (i % OF_SLAB == 0)
            hak_free(blocks[i]);
}

/* Nobody else may ever have a heartbeat. */
static void a_thread_that_ends_starts_the_purger(void)
{
    struct worker worker;
    struct heap *ended;
    heap_own();
    policy.heartbeat_bytes = 1 << 30;
    worker_start(&worker);
    worker_run(&worker, make_blocks, &ended);
    worker_run(&worker, free_all_blocks, NULL);
    CHECK(!os_service_runs());
    worker_stop(&worker);
    CHECK(os_service_runs());
}

/* One whose sleeps take no time may have ended by now. */
static bool starts(struct heap *heap)
{
    size_t before = fake_os_made(FAKE_SERVICE);
    purger_consider(heap);
    return fake_os_made(FAKE_SERVICE) > before;
}

/* It has enough to do, and looks once in so many milliseconds. */
static struct heap *start_purger(size_t period_ms)
{
    struct heap *heap = heap_own();
    policy.heartbeat_bytes = 1 << 30;
    policy.purge_ms = period_ms;
    make_dirty(32 * MIB);
    CHECK(starts(heap));
    return heap;
}

static void wait_for_its_end(void)
{
    for (int i = 0; i < 2000 && os_service_runs(); i++)
        usleep(10000);
    CHECK(!os_service_runs());
}

static void pass_time(uint32_t ms)
{
    fake_clock_set(clock_now_ms() + ms);
}

/* The purger's sleeps take no time, but by the clock. */
static void let_time_fly(void)
{
    fake_clock_set(START_MS);
    fake_os_before_sleep(pass_time);
    fake_os_refuse(FAKE_SLEEP, 1, FAKE_EVERY);
}

/* It gives all back, and ends. */
static void the_purger_ends_when_there_is_nothing_left(void)
{
    let_time_fly();
    (void)start_purger(50);
    wait_for_its_end();
    CHECK(span_dirty_bytes() == 0);
}

/* Large blocks have a time of their own, which may be many of its periods. */
static void the_purger_stays_while_large_blocks_are_kept(void)
{
    struct heap *heap = heap_own();
    policy.heartbeat_bytes = 1 << 30;
    policy.purge_ms = 50;
    for (int bin = 0; bin < SIZE_BINS; bin++)
        policy.bigcache_ms[bin] = 2500;
    let_time_fly();
    hak_free(hak_malloc(32 * MIB));
    CHECK(bigcache_bytes() >= 32 * MIB);
    purger_consider(heap);
    wait_for_its_end();
    CHECK(bigcache_bytes() == 0 && span_dirty_bytes() == 0);
}

/* A program that takes and frees again and again is never found with anything old; once it has freed all, it may sleep. */
static void what_was_left_and_has_gone_may_come_back(void)
{
    fake_clock_set(START_MS); /* nothing grows old */
    fake_os_refuse(FAKE_SLEEP, 1, FAKE_EVERY);
    struct heap *heap = start_purger(100);
    wait_for_its_end();
    CHECK(span_dirty_bytes() >= 32 * MIB);
    CHECK(!starts(heap));
    let_time_fly();
    CHECK(span_purge_all() >= 32 * MIB);
    CHECK(!starts(heap));
    make_dirty(32 * MIB);
    CHECK(starts(heap));
    wait_for_its_end();
    CHECK(span_dirty_bytes() == 0);
}

static struct worker freeing;
static struct heap *freed_by;

/* In vain it would look for the third time. */
static void free_before_the_third_look(uint32_t ms)
{
    pass_time(ms);
    switch (fake_os_made(FAKE_SLEEP)) {
    case 0:
        CHECK(span_purge_all() >= 32 * MIB);
        break;
    case 2:
        worker_run(&freeing, make_blocks, &freed_by);
        break;
    default:
        break;
    }
}

/* Before its last look, by a thread that sleeps from then on: the purger is not started again. */
static void what_is_freed_while_it_sleeps_is_seen(void)
{
    worker_start(&freeing);
    let_time_fly();
    fake_os_before_sleep(free_before_the_third_look);
    (void)start_purger(1000);
    wait_for_its_end();
    CHECK(freed_by->frozen == FREEZE_HOLES && freed_by->hole_bytes >= COUNT / OF_SLAB * 64 * KIB);
    worker_stop(&freeing);
}

enum { BUSY_LOOKS = 40 };

static void take_and_free(void *unused)
{
    (void)unused;
    hak_free(hak_malloc(2 * SIZE));
}

static void be_busy_at_first(uint32_t ms)
{
    pass_time(ms);
    if (fake_os_made(FAKE_SLEEP) < BUSY_LOOKS)
        worker_run(&freeing, take_and_free, NULL);
}

/* What it holds meanwhile is looked at by nobody, and when it falls asleep nobody starts a purger. */
static void who_falls_asleep_at_last_is_waited_for(void)
{
    policy.heartbeat_bytes = 1 << 30;
    worker_start(&freeing);
    worker_run(&freeing, make_blocks, &freed_by);
    let_time_fly();
    fake_os_before_sleep(be_busy_at_first);
    (void)start_purger(1000);
    wait_for_its_end();
    CHECK(fake_os_made(FAKE_SLEEP) > BUSY_LOOKS);
    CHECK(freed_by->frozen == FREEZE_HOLES && freed_by->hole_bytes >= COUNT / OF_SLAB * 64 * KIB);
    worker_stop(&freeing);
}

static void child_has_nothing_left(void)
{
    struct heap *heap = heap_own();
    CHECK(!os_service_runs() && heap->left_free == 0);
    fake_os_refuse(FAKE_SERVICE, 1, FAKE_EVERY); /* ThreadSanitizer allows no threads in a fork's child */
    purger_consider(heap);
    CHECK(fake_os_refused() == 1);
}

/* What a purger would have given back in time waits in the child for another. */
static void children_start_their_own(void)
{
    fake_clock_set(START_MS); /* nothing grows old */
    struct heap *heap = start_purger(100);
    while (fake_os_made(FAKE_SLEEP) < 2) /* it has noted what is left */
        usleep(1000);
    store_relaxed(&heap->left_free, MIB);
    forks_and(child_has_nothing_left);
}

/* What it could not give back of one heap says nothing of what others leave behind. */
static void what_is_left_in_one_heap_keeps_no_other_waiting(void)
{
    struct view *word;
    struct heap *heap = heap_own();
    struct heap *other = heap_other(&word);
    policy.heartbeat_bytes = 1 << 30;
    heap->left_free = other->left_free = GIB;
    make_dirty(8 * MIB);
    purger_consider(heap);
    CHECK(!os_service_runs());
    make_dirty(32 * MIB);
    purger_consider(heap);
    CHECK(os_service_runs());
}

enum { SMALL_HEAPS = 4 };

static bool starts_at_a_beat(struct heap *heap)
{
    purger_note_beat(heap);
    purger_consider(heap);
    return os_service_runs();
}

/* More than a heartbeat looks at: the next ones go on. */
static void many_heaps_are_counted_in_turns(void)
{
    enum { HEAPS = 40 };
    static struct view *words[HEAPS];
    struct heap *heap = heap_own();
    policy.heartbeat_bytes = 1 << 30;
    for (int i = 0; i < HEAPS; i++)
        heap_other(&words[i])->could_give = MIB * 9 / 20;
    CHECK(!starts_at_a_beat(heap));
    CHECK(!starts_at_a_beat(heap));
    CHECK(starts_at_a_beat(heap));
}

/* Each has less than would be worth a purger. */
static void what_several_heaps_hold_starts_the_purger(void)
{
    struct view *words[SMALL_HEAPS];
    struct heap *heap = heap_own();
    policy.heartbeat_bytes = 1 << 30;
    for (int i = 0; i < SMALL_HEAPS; i++)
        heap_other(&words[i])->could_give = 5 * MIB;
    for (int i = 0; i < SMALL_HEAPS; i++)
        words[i]->heap->left_free = i == 0 ? 5 * MIB : 0;
    CHECK(!starts_at_a_beat(heap));
    CHECK(!starts_at_a_beat(heap) && !starts_at_a_beat(heap));
    words[0]->heap->left_free = 0;
    CHECK(starts_at_a_beat(heap));
}

/* What the owner says of its own heap: free blocks, and what its magazines may hold. */
static void a_heartbeat_tells_what_could_be_taken(void)
{
    struct worker worker;
    struct heap *sleeper = start_sleeper(&worker);
    purger_note_beat(sleeper);
    CHECK(sleeper->could_give >= COUNT / OF_SLAB * (OF_SLAB - 1) * (size_t)SIZE);
    CHECK(sleeper->could_give <= COUNT * (size_t)SIZE);
    worker_stop(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(sleepers_give_back_their_holes),       UNIT_TEST(mail_that_others_collect_keeps_no_holes),
        UNIT_TEST(who_only_frees_what_others_allocated_has_heartbeats), UNIT_TEST(those_awake_are_left_alone),
        UNIT_TEST(ended_threads_give_back_theirs),       UNIT_TEST(without_a_barrier_free_units_go_back),
        UNIT_TEST(much_starts_the_purger),               UNIT_TEST(a_thread_that_ends_starts_the_purger),
        UNIT_TEST(the_purger_ends_when_there_is_nothing_left),
        UNIT_TEST(the_purger_stays_while_large_blocks_are_kept),
        UNIT_TEST(what_was_left_and_has_gone_may_come_back),
        UNIT_TEST(what_is_freed_while_it_sleeps_is_seen),
        UNIT_TEST(who_falls_asleep_at_last_is_waited_for),
        UNIT_TEST(children_start_their_own),
        UNIT_TEST(what_is_left_in_one_heap_keeps_no_other_waiting),
        UNIT_TEST(what_several_heaps_hold_starts_the_purger),
        UNIT_TEST(many_heaps_are_counted_in_turns),
        UNIT_TEST(a_heartbeat_tells_what_could_be_taken),
    };
    return cmocka_run_group_tests_name("purger", tests, NULL, NULL);
}
