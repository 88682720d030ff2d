/*
 * lifetimes COUNT SEED [--live BYTES] [--most BYTES]
 *
 * A large set of live blocks, each of which lives for a bounded, random time. COUNT times a block of 16 to --most
 * bytes (default 32 KiB; each doubling as likely as any other, so most are small) is allocated, and those are freed
 * whose time has come: a block dies 1 to L allocations after its own. L is such that the live blocks have --live
 * bytes (default 64 MiB) once the first L allocations are done. One in 4096 lives to the end. The first and last byte
 * are written, and checked when the block is freed. An operation is a malloc or a free.
 */
#include "workload.h"

enum { LEAST = 16, EVER = 4096, NONE = UINT32_MAX };

struct entry {
    struct block block;
    uint32_t next; /* that dies at the same time, or NONE */
};

/* The block of allocation n is entry n modulo `times`: the one before it there is dead by then. */
struct plan {
    uint64_t count;
    uint64_t most;
    uint64_t state;
    uint64_t times;       /* L + 1 */
    struct entry *entry;  /* [times] */
    uint32_t *dying;      /* [times]: the first that dies at that time, modulo `times` */
    struct block *ever;   /* [count / EVER + 1]: every EVER-th */
    uint64_t operations;
};

/* L: a block lives L / 2 allocations on average. */
static uint64_t longest_life(uint64_t live, uint64_t most, uint64_t seed)
{
    enum { DRAWS = 65536 };
    uint64_t state = workload_seed(seed, 1);
    uint64_t sum = 0;
    for (int i = 0; i < DRAWS; i++)
        sum += workload_size(random_next(&state), LEAST, most);
    uint64_t longest = 2 * live / (sum / DRAWS);
    return longest == 0 ? 1 : longest;
}

static void bury(struct plan *plan, uint64_t time)
{
    uint32_t *first = &plan->dying[time];
    for (uint32_t i = *first; i != NONE; i = plan->entry[i].next) {
        block_drop(plan->entry[i].block);
        plan->operations++;
    }
    *first = NONE;
}

static void run(struct plan *plan)
{
    uint64_t time = 0;
    for (uint64_t i = 0; i < plan->count; i++) {
        bury(plan, time);
        struct block block = block_take(workload_size(random_next(&plan->state), LEAST, plan->most));
        if (i % EVER == 0) {
            plan->ever[i / EVER] = block;
        } else {
            uint64_t death = time + 1 + random_below(random_next(&plan->state), plan->times - 1);
            uint32_t *first = &plan->dying[death < plan->times ? death : death - plan->times];
            plan->entry[time] = (struct entry){block, *first};
            *first = (uint32_t)time;
        }
        time = time + 1 == plan->times ? 0 : time + 1;
    }
    plan->operations += plan->count;
}

static void free_rest(struct plan *plan)
{
    for (uint64_t time = 0; time < plan->times; time++)
        bury(plan, time);
    for (uint64_t i = 0; i * EVER < plan->count; i++)
        block_drop(plan->ever[i]);
    free(plan->entry);
    free(plan->dying);
    free(plan->ever);
}

int main(int count, char **words)
{
    uint64_t live = 64 << 20;
    uint64_t most = 32 << 10;
    const struct workload_option options[] = {
        {"--live", &live, 1024, UINT64_C(1) << 34},
        {"--most", &most, LEAST + 1, 1 << 30},
    };
    if (count < 3 || !workload_options(count, words, 3, options, 2)) {
        fputs("usage: lifetimes COUNT SEED [--live BYTES] [--most BYTES]\n", stderr);
        return 2;
    }
    uint64_t seed = args_number("SEED", words[2], 1, UINT64_MAX / 2);
    struct plan plan = {
        .count = args_number("COUNT", words[1], 1, UINT32_MAX),
        .most = most,
        .state = workload_seed(seed, 0),
        .times = longest_life(live, most, seed) + 1,
    };
    plan.entry = calloc(plan.times, sizeof *plan.entry);
    plan.dying = calloc(plan.times, sizeof *plan.dying);
    plan.ever = calloc(plan.count / EVER + 1, sizeof *plan.ever);
    if (plan.entry == NULL || plan.dying == NULL || plan.ever == NULL)
        workload_fail("out of memory");
    memset(plan.dying, 0xff, plan.times * sizeof *plan.dying); /* NONE */

    double start = timing_seconds();
    run(&plan);
    double seconds = timing_seconds() - start;
    workload_throughput(plan.operations, seconds);
    free_rest(&plan);
    return 0;
}
