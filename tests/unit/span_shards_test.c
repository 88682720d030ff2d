/* span/shards.h: several locks hold no more memory than one, find what the others have, and keep the hard limit together. */
#include "unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_os.h"
#include "grains.h"
#include "random.h"
#include "scale.h"
#include "span/limit.h"
#include "span/shards.h"
#include "worker.h"

enum { WORKERS = 8, RUNS = 400, STEPS = 8000, ONE = 1, EIGHT = 64 /* processors, for so many shards */ };

static struct worker workers[WORKERS];

/* Whose shards differ, as far as there are. */
static void start(size_t processors)
{
    grains_init();
    span_spread(processors);
    for (int i = 0; i < WORKERS; i++)
        worker_start(&workers[i]);
}

static void are_as_many_as_processors_need(void)
{
    static const size_t expected[][2] = {{1, 0}, {8, 0}, {9, 2}, {16, 2}, {17, 4}, {64, 8}, {65, 16}, {SIZE_MAX, 16}, {1, 16}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        span_spread(expected[i][0]);
        CHECK(span_spread_over == expected[i][1]);
    }
}

static struct run {
    char *at;
    size_t grains;
} runs[RUNS];

static void take(void *argument)
{
    struct run *run = argument;
    run->at = grains_take_any(run->grains);
}

static void give(void *argument)
{
    struct run *run = argument;
    grains_give(run->at, run->grains, true);
    run->at = NULL;
}

/* One load at a time, each step on any of the threads. */
static void wander(size_t *committed)
{
    uint64_t seed = 17;
    for (size_t step = 0; step < STEPS; step++) {
        struct run *run = &runs[random_below(&seed, RUNS)];
        struct worker *worker = &workers[random_below(&seed, WORKERS)];
        run->grains = run->at != NULL ? run->grains : 1 + random_below(&seed, random_below(&seed, 4) == 0 ? 60 : 8);
        worker_run(worker, run->at == NULL ? take : give, run);
    }
    struct span_stats stats;
    span_stats(&stats);
    *committed = stats.committed_bytes;
}

static size_t committed_by(size_t processors)
{
    size_t *committed = mmap(NULL, sizeof *committed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(committed != MAP_FAILED);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        start(processors);
        wander(committed);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return *committed;
}

/* A superslab in use is not left for an empty one, whose ever it is; but of those in use the tightest hole is not the whole
 * range's any more. */
static void hold_little_more_than_one(void)
{
    size_t alone = committed_by(ONE);
    size_t shared = committed_by(EIGHT);
    CHECK(alone >= 16 * SUPERSLAB_SIZE);
    CHECK(shared <= alone + alone / 8);
}

static struct span_shard *owners[WORKERS];

static void note_owner(void *argument)
{
    struct run *run = argument;
    take(run);
    owners[run - runs] = shard_of(superslab_at(grain_of(run->at) / superslab_grains));
}

static void find_the_others_room(void)
{
    start(EIGHT);
    for (int i = 0; i < WORKERS; i++) {
        runs[i].grains = 2;
        worker_run(&workers[i], note_owner, &runs[i]);
    }
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.committed_bytes == SUPERSLAB_SIZE && stats.used_bytes == 2 * WORKERS * grain_bytes);
    CHECK(stats.served[SPAN_NEW] == 1 && stats.served[SPAN_PARTLY] == WORKERS - 1);
    CHECK(owners[0] == shards_pool());
    size_t other = 0;
    for (int i = 1; i < WORKERS; i++)
        other += owners[i] != shards_pool() && owners[i] != owners[i - 1];
    CHECK(other >= WORKERS / 2);
}

/* Warm units elsewhere come before an empty superslab of the pool. */
static void find_the_others_pages(void)
{
    start(EIGHT);
    runs[0].grains = runs[1].grains = superslab_grains;
    for (int i = 0; i < 2; i++)
        worker_run(&workers[0], take, &runs[i]);
    grains_give(runs[0].at, superslab_grains, false);
    grains_give(runs[1].at + 8 * grain_bytes, 4, true);
    char *freed = runs[1].at + 8 * grain_bytes;
    runs[0].grains = 4;
    worker_run(&workers[1], take, &runs[0]);
    CHECK(runs[0].at == freed);
}

/* Superslabs that were several shards' are neighbours again. */
static void long_runs_are_found_again(void)
{
    start(EIGHT);
    for (int i = 0; i < 2 * WORKERS; i++)
        runs[i].grains = superslab_grains / 2 - 1;
    for (int i = 0; i < 2 * WORKERS; i++)
        worker_run(&workers[i / 2], take, &runs[i]);
    char *low = runs[0].at;
    for (int i = 0; i < 2 * WORKERS; i++) {
        low = runs[i].at < low ? runs[i].at : low;
        worker_run(&workers[(i + 3) % WORKERS], give, &runs[i]);
    }
    struct span_stats before;
    struct span_stats after;
    span_stats(&before);
    CHECK(before.used_bytes == 0 && before.dirty_bytes == 2 * WORKERS * (superslab_grains / 2 - 1) * grain_bytes);
    CHECK(grains_take_any(WORKERS * superslab_grains) == low);
    span_stats(&after);
    CHECK(after.committed_bytes == before.committed_bytes);
}

/* What the pool keeps of a long run is everybody's. */
static void share_the_rest_of_long_runs(void)
{
    start(EIGHT);
    char *run = grains_take_any(2 * superslab_grains + 5);
    runs[0].grains = 3;
    worker_run(&workers[2], take, &runs[0]);
    CHECK(runs[0].at == run + (2 * superslab_grains + 5) * grain_bytes);
    grains_give(run, 2 * superslab_grains + 5, true);
    give(&runs[0]);
    CHECK(grains_take_any(3 * superslab_grains) == run);
}

static void purge_finds_all(void)
{
    start(EIGHT);
    for (int i = 0; i < WORKERS; i++) {
        runs[i].grains = superslab_grains - 3;
        worker_run(&workers[i], take, &runs[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        grains_give(runs[i].at, 9, true);
    CHECK(span_dirty_bytes() == 9 * WORKERS * grain_bytes);
    CHECK(span_purge_all() == 9 * WORKERS * grain_bytes);
    CHECK(span_dirty_bytes() == 0);
}

enum { LIMIT = 500, LONGEST = 40 };

static atomic_size_t granted; /* grains: counted later and discounted sooner than they are held */
static atomic_size_t refused;
static atomic_bool passed;

static void take_counted(struct run *run, size_t grains)
{
    bool zero;
    run->grains = grains;
    run->at = grains_take(grains, 1, &zero);
    if (run->at == NULL)
        atomic_fetch_add(&refused, 1);
    else if (atomic_fetch_add(&granted, grains) + grains > LIMIT)
        passed = true;
}

static void give_counted(struct run *run)
{
    atomic_fetch_sub(&granted, run->grains);
    grains_give(run->at, run->grains, false);
    run->at = NULL;
}

static void press(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    struct run own[64] = {{0}};
    size_t steps = scaled_work(10 * STEPS);
    for (size_t step = 0; step < steps; step++) {
        struct run *run = &own[random_below(&seed, 64)];
        if (run->at != NULL)
            give_counted(run);
        else
            take_counted(run, 1 + random_below(&seed, LONGEST));
        if (load_relaxed(&limit_bytes) > LIMIT * grain_bytes)
            passed = true;
    }
    for (int i = 0; i < 64; i++)
        if (own[i].at != NULL)
            give_counted(&own[i]);
}

static void keep_the_hard_limit_together(void)
{
    start(EIGHT);
    limit_set(SIZE_MAX, grains_as_limit(LIMIT));
    for (uintptr_t i = 0; i < WORKERS; i++)
        worker_begin(&workers[i], press, (void *)(i + 1));
    for (int i = 0; i < WORKERS; i++)
        worker_wait(&workers[i]);
    CHECK(refused > 0 && !passed);
    CHECK(limit_held() == grains_as_limit(0));
    grains_take_any(LIMIT);
}

/* All at once: content stays, no unit is given out twice, and the sums are right in the end. */
static void churn(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    struct run own[16] = {{0}};
    size_t steps = scaled_work(STEPS);
    for (size_t step = 0; step < steps; step++) {
        struct run *run = &own[random_below(&seed, 16)];
        uint64_t mark = (uintptr_t)argument << 32 | (uintptr_t)(run - own);
        if (random_below(&seed, 200) == 0) {
            (void)(random_below(&seed, 2) == 0 ? span_purge_all() : span_purge_old(UINT64_MAX / 2, SIZE_MAX));
        } else if (run->at == NULL) {
            run->grains = 1 + random_below(&seed, random_below(&seed, 16) == 0 ? 2 * superslab_grains : 12);
            run->at = grains_take_any(run->grains);
            grains_write_words(run->at, run->grains, mark);
        } else if (random_below(&seed, 4) == 0) {
            bool zero = true;
            if (grains_extend(run->at + run->grains * grain_bytes, 1, &zero)) {
                grains_write_words(run->at + run->grains * grain_bytes, 1, mark);
                run->grains++;
            }
        } else {
            grains_check_words(run->at, run->grains, mark);
            give(run);
        }
    }
    for (int i = 0; i < 16; i++)
        if (own[i].at != NULL)
            give(&own[i]);
}

static void churn_all(bool kernel_refuses)
{
    start(EIGHT);
    if (kernel_refuses)
        fake_os_refuse_some(FAKE_PURGE, 4, 9);
    for (uintptr_t i = 0; i < WORKERS; i++)
        worker_begin(&workers[i], churn, (void *)(i + 1));
    for (int i = 0; i < WORKERS; i++)
        worker_wait(&workers[i]);
    fake_os_obey();
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.used_bytes == 0);
    for (unsigned i = 0; i < shards_count(); i++) {
        const struct span_shard *shard = &span_shards[i];
        CHECK(shard->in_purge.first == NULL && shard->in_purge.last == NULL && shard->used_bytes == 0);
        CHECK(i == 0 || (shard->dirty_units == 0 && shard->rooms == 0 && shard->dirty_queue.first == NULL));
    }
    grains_check_stats();
    char *all = grains_take_any(stats.committed_bytes / SUPERSLAB_SIZE * superslab_grains);
    CHECK(all == arena.base);
}

static void serve_many_threads(void)
{
    churn_all(false);
}

static void serve_while_the_kernel_refuses(void)
{
    churn_all(true);
}

/* Who waits for a superslab's shard finds it in another. */
static void follow_a_superslab_that_moves(void)
{
    start(EIGHT);
    for (int i = 0; i < 2; i++) {
        runs[i].grains = 3;
        worker_run(&workers[i], take, &runs[i]);
    }
    struct superslab *s = superslab_at(grain_of(runs[0].at) / superslab_grains);
    struct span_shard *from = shard_of(s);
    struct span_shard *to = from == &span_shards[8] ? &span_shards[7] : &span_shards[8];
    CHECK(from != shards_pool());
    shards_lock_two(from, to);
    worker_begin(&workers[2], give, &runs[0]);
    while (!lock_is_wanted(&from->lock))
        sched_yield();
    superslab_move(s, to);
    lock_drop(&from->lock);
    lock_drop(&to->lock);
    worker_wait(&workers[2]);
    CHECK(shard_of(s) == to && from->used_bytes == 0 && to->used_bytes == 3 * grain_bytes);
    CHECK(from->dirty_units == 0 && to->dirty_units << UNIT_SHIFT == 3 * grain_bytes);
    CHECK(from->dirty_queue.first == NULL && to->dirty_queue.first == &s->age);
}

static void locks_are_known_as_mine(void)
{
    start(EIGHT);
    CHECK(!span_lock_is_mine());
    lock_take(&span_shards[5].lock);
    CHECK(span_lock_is_mine());
    lock_drop(&span_shards[5].lock);
    span_lock_all();
    for (unsigned i = 0; i < shards_count(); i++)
        CHECK(lock_is_mine(&span_shards[i].lock));
    span_unlock_all();
    CHECK(!span_lock_is_mine());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(are_as_many_as_processors_need), UNIT_TEST(hold_little_more_than_one),
        UNIT_TEST(find_the_others_room),           UNIT_TEST(find_the_others_pages),
        UNIT_TEST(long_runs_are_found_again),      UNIT_TEST(share_the_rest_of_long_runs),
        UNIT_TEST(purge_finds_all),                UNIT_TEST(keep_the_hard_limit_together),
        UNIT_TEST(serve_many_threads),             UNIT_TEST(serve_while_the_kernel_refuses),
        UNIT_TEST(follow_a_superslab_that_moves),  UNIT_TEST(locks_are_known_as_mine),
    };
    return cmocka_run_group_tests_name("span_shards", tests, NULL, NULL);
}
