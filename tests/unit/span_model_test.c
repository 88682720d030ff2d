/* span/span.h: random operations follow a model of which grains are taken and what they hold; by one thread, or one after another by
 * several whose shards differ. */
#include "unit.h"

#include "fake_os.h"
#include "grains.h"
#include "random.h"
#include "scale.h"
#include "span/span.h"
#include "worker.h"

enum { RUNS = 64, STEPS = 20000, WORKERS = 8, PROCESSORS = 64 };

struct run {
    char *at;
    size_t grains;
    uint64_t mark;
    bool written;
};

static struct run runs[RUNS];
static struct worker workers[WORKERS];
static uint64_t seed = 6;

static void take_run(struct run *run)
{
    size_t align = (size_t)1 << (random_below(&seed, 4) == 0 ? random_below(&seed, 7) : 0);
    bool zero = false;
    run->grains = 1 + random_below(&seed, random_below(&seed, 4) == 0 ? 3 * superslab_grains : 12);
    run->at = grains_take(run->grains, align, &zero);
    CHECK(run->at != NULL);
    CHECK((uintptr_t)run->at % (align * grain_bytes) == 0);
    CHECK(grain_of(run->at) % superslab_grains + run->grains <= superslab_grains ||
          (run->grains > superslab_grains && grain_of(run->at) % superslab_grains == 0));
    grains_mark_taken(run->at, run->grains, true);
    if (zero)
        grains_check_words(run->at, run->grains, 0);
    run->written = random_below(&seed, 4) != 0;
    run->mark = random_next(&seed) | 1;
    if (run->written)
        grains_write_words(run->at, run->grains, run->mark);
}

static void give_run(struct run *run)
{
    if (run->written)
        grains_check_words(run->at, run->grains, run->mark);
    size_t first = random_below(&seed, 3) == 0 ? random_below(&seed, run->grains) : 0;
    grains_mark_taken(run->at, run->grains, false);
    /* Not written by this run does not mean clean: it may hold what an earlier one wrote. */
    if (first > 0)
        grains_give(run->at, first, true);
    grains_give(run->at + first * grain_bytes, run->grains - first, true);
    run->at = NULL;
}

static void extend_run(struct run *run)
{
    size_t more = 1 + random_below(&seed, 6);
    char *end = run->at + run->grains * grain_bytes;
    bool zero = true;
    if (!grains_extend(end, more, &zero))
        return;
    grains_mark_taken(end, more, true);
    if (zero)
        grains_check_words(end, more, 0);
    if (run->written)
        grains_write_words(end, more, run->mark);
    run->grains += more;
}

/* What was refused stays dirty, and nobody looks at it, until the next free in its superslab. */
static size_t left_dirty;

/* Sometimes with a kernel that refuses, now and then. */
static void purge(void)
{
    struct span_stats before;
    struct span_stats after;
    span_stats(&before);
    bool refuses = random_below(&seed, 3) == 0;
    if (refuses)
        fake_os_refuse(FAKE_PURGE, 1 + random_below(&seed, 3), 1 + random_below(&seed, 3));
    size_t bytes = span_purge_all();
    bool refused = refuses && fake_os_refused() > 0;
    fake_os_obey();
    span_stats(&after);
    CHECK(after.used_bytes == before.used_bytes);
    CHECK(after.dirty_bytes <= before.dirty_bytes - bytes);
    CHECK(refused || after.dirty_bytes <= left_dirty);
    left_dirty = after.dirty_bytes;
}

static void change(void *argument)
{
    struct run *run = argument;
    if (random_below(&seed, 500) == 0)
        purge();
    else if (run->at == NULL)
        take_run(run);
    else if (random_below(&seed, 4) == 0)
        extend_run(run);
    else
        give_run(run);
}

static void follow(size_t steps, bool in_shards)
{
    for (size_t step = 0; step < steps; step++) {
        struct run *run = &runs[random_below(&seed, RUNS)];
        if (in_shards)
            worker_run(&workers[random_below(&seed, WORKERS)], change, run);
        else
            change(run);
        grains_check_stats();
    }
    for (int i = 0; i < RUNS; i++)
        if (runs[i].at != NULL)
            give_run(&runs[i]);
    grains_check_stats();
    CHECK(grains_taken() == 0);
}

static void follows_a_model(void)
{
    grains_init();
    follow(scaled_work(STEPS), false);
}

static void follows_it_in_shards(void)
{
    grains_init();
    span_spread(PROCESSORS);
    for (int i = 0; i < WORKERS; i++)
        worker_start(&workers[i]);
    follow(scaled_work(STEPS), true);
}

/* What one lock had is everybody's. */
static void follows_it_while_threads_spread(void)
{
    grains_init();
    for (int i = 0; i < WORKERS; i++)
        worker_start(&workers[i]);
    for (size_t processors = 1; processors <= 256; processors *= 4) {
        span_spread(processors);
        follow(scaled_work(STEPS) / 4, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(follows_a_model),
        UNIT_TEST(follows_it_in_shards),
        UNIT_TEST(follows_it_while_threads_spread),
    };
    return cmocka_run_group_tests_name("span_model", tests, NULL, NULL);
}
