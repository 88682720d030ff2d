/*
 * zeroed COUNT SEED [--least BYTES] [--most BYTES]
 *
 * calloc in a set of live blocks. COUNT times one of 512 slots is picked at random: a full one is freed, an empty one
 * gets a zeroed block of --least (default 16) to --most bytes (default 1 MiB; each doubling as likely as any other).
 * One byte in 256 is checked to be zero and then dirtied, as are the first and the last. An operation is a calloc or
 * a free.
 */
#include "workload.h"

enum { SLOTS = 512, STRIDE = 256 };

struct plan {
    uint64_t count;
    uint64_t least;
    uint64_t most;
    uint64_t state;
    char *slots[SLOTS];
};

static inline void dirty(volatile char *byte)
{
    if (*byte != 0)
        workload_fail("calloc has returned a block that is not zero");
    *byte = 1;
}

static char *take(size_t size)
{
    char *block = calloc(1, size);
    if (block == NULL)
        workload_fail("out of memory");
    /* By address, not by offset: what is dirtied here is then checked in every later block that covers it. */
    uintptr_t start = (uintptr_t)block;
    for (size_t at = STRIDE - start % STRIDE; at < size - 1; at += STRIDE)
        dirty(block + at);
    dirty(block);
    if (size > 1)
        dirty(block + size - 1);
    return block;
}

static void run(struct plan *plan)
{
    for (uint64_t i = 0; i < plan->count; i++) {
        uint64_t random = random_next(&plan->state);
        char **slot = &plan->slots[random_below(random, SLOTS)];
        if (*slot != NULL) {
            free(*slot);
            *slot = NULL;
        } else {
            *slot = take(workload_size(random_next(&plan->state), plan->least, plan->most));
        }
    }
}

int main(int count, char **words)
{
    uint64_t least = 16;
    uint64_t most = 1 << 20;
    const struct workload_option options[] = {
        {"--least", &least, 1, 1 << 30},
        {"--most", &most, 2, 1 << 30},
    };
    if (count < 3 || !workload_options(count, words, 3, options, 2) || least >= most) {
        fputs("usage: zeroed COUNT SEED [--least BYTES] [--most BYTES], with least below most\n", stderr);
        return 2;
    }
    struct plan plan = {
        .count = args_number("COUNT", words[1], 1, UINT64_MAX / 2),
        .least = least,
        .most = most,
        .state = workload_seed(args_number("SEED", words[2], 1, UINT64_MAX / 2), 0),
    };

    double start = timing_seconds();
    run(&plan);
    double seconds = timing_seconds() - start;
    workload_throughput(plan.count, seconds);
    for (size_t i = 0; i < SLOTS; i++)
        free(plan.slots[i]);
    return 0;
}
