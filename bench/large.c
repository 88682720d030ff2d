/*
 * large COUNT SEED [--least BYTES] [--most BYTES]
 *
 * Large blocks of changing size. COUNT times one of 64 slots is picked at random, its block, if any, is freed, and it
 * gets a new one of --least (default 64 KiB) to --most bytes (default 16 MiB; each doubling as likely as any other).
 * The first and last byte of each block are written, and checked when it is freed. In one block of four, picked at
 * random, one byte in each 4 KiB is written as well: programs often ask for more than they use. An operation is a
 * malloc or a free.
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

static void run(struct plan *plan)
{
    for (uint64_t i = 0; i < plan->count; i++) {
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
}

int main(int count, char **words)
{
    uint64_t least = 64 << 10;
    uint64_t most = 16 << 20;
    const struct workload_option options[] = {
        {"--least", &least, 2, 1 << 30},
        {"--most", &most, 3, 1 << 30},
    };
    if (count < 3 || !workload_options(count, words, 3, options, 2) || least >= most) {
        fputs("usage: large COUNT SEED [--least BYTES] [--most BYTES], with least below most\n", stderr);
        return 2;
    }
    struct plan plan = {
        .count = args_number("COUNT", words[1], 1, UINT64_MAX / 4),
        .least = least,
        .most = most,
        .state = workload_seed(args_number("SEED", words[2], 1, UINT64_MAX / 2), 0),
    };

    double start = timing_seconds();
    run(&plan);
    double seconds = timing_seconds() - start;
    workload_throughput(plan.operations, seconds);
    for (size_t i = 0; i < SLOTS; i++)
        if (plan.slots[i].data != NULL)
            block_drop(plan.slots[i]);
    return 0;
}
