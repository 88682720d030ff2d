/*
 * large COUNT SEED [--least BYTES] [--most BYTES] [--warm-up SECONDS]
 *
 * Large blocks of changing size. COUNT times one of 64 slots is picked at random, its block, if any, is freed, and it
 * gets a new one of --least (default 64 KiB) to --most bytes (default 16 MiB; each doubling as likely as any other).
 * The first and last byte of each block are written, and checked when it is freed. In one block of four, picked at
 * random, one byte in each 4 KiB is written as well: programs often ask for more than they use. An operation is a
 * malloc or a free. With --warm-up the same is done for so long before it counts.
 */
#include "workload.h"

enum { SLOTS = 64, PAGE = 4096, TOUCHED = 4 };

struct plan {
    uint64_t count;
    uint64_t least;
    uint64_t most;
    uint64_t state;
    uint64_t operations;
    struct block slots[SLOTS];
};

/* Between the marks at both ends. */
static void touch(struct block block)
{
    for (size_t at = PAGE; at < block.size - 1; at += PAGE)
        block.data[at] = 1;
}

static void replace_one(struct plan *plan)
{
    struct block *slot = &plan->slots[random_below(random_next(&plan->state), SLOTS)];
    if (slot->data != NULL) {
        block_drop(*slot);
        plan->operations++;
    }
    *slot = block_take(workload_size(random_next(&plan->state), plan->least, plan->most));
    plan->operations++;
    if (random_below(random_next(&plan->state), TOUCHED) == 0)
        touch(*slot);
}

int main(int count, char **words)
{
    uint64_t least = 64 << 10;
    uint64_t most = 16 << 20;
    uint64_t warm_up = 0;
    const struct workload_option options[] = {
        {"--least", &least, 2, 1 << 30},
        {"--most", &most, 3, 1 << 30},
        workload_warm_up(&warm_up),
    };
    if (count < 3 || !workload_options(count, words, 3, options, 3) || least >= most) {
        fputs("usage: large COUNT SEED [--least BYTES] [--most BYTES] [--warm-up SECONDS], with least below most\n", stderr);
        return 2;
    }
    struct plan plan = {
        .count = args_number("COUNT", words[1], 1, UINT64_MAX / 4),
        .least = least,
        .most = most,
        .state = workload_seed(args_number("SEED", words[2], 1, UINT64_MAX / 2), 0),
    };

    struct warm_up warm = warm_up_begin(warm_up);
    while (warm_up_goes_on(&warm))
        replace_one(&plan);
    warm.operations = plan.operations;
    double start = timing_seconds();
    for (uint64_t i = 0; i < plan.count; i++)
        replace_one(&plan);
    double seconds = timing_seconds() - start;
    workload_throughput(plan.operations - warm.operations, seconds);
    warm_up_print(&warm);
    for (size_t i = 0; i < SLOTS; i++)
        if (plan.slots[i].data != NULL)
            block_drop(plan.slots[i]);
    return 0;
}
