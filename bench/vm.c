/*
 * vm COUNT [--size BYTES] [--warm-up SECONDS]
 *
 * COUNT times one block of --size bytes (default 2 MiB) is allocated, one byte is written in each 4 KiB of it, and it
 * is freed. Shows what an allocator asks of the kernel for large blocks that come and go. An operation is such a round.
 * With --warm-up the same is done for so long before it counts.
 */
#include "workload.h"

enum { PAGE = 4096 };

static void round_of(uint64_t size, char mark)
{
    /* Volatile, or the compiler sees that nobody reads the block and leaves out the round. */
    volatile char *block = malloc(size);
    if (block == NULL)
        workload_fail("out of memory");
    for (uint64_t at = 0; at < size; at += PAGE)
        block[at] = mark;
    free((void *)block);
}

int main(int count, char **words)
{
    uint64_t size = 2 << 20;
    uint64_t warm_up = 0;
    const struct workload_option options[] = {{"--size", &size, 1, UINT64_C(1) << 40}, workload_warm_up(&warm_up)};
    if (count < 2 || !workload_options(count, words, 2, options, 2)) {
        fputs("usage: vm COUNT [--size BYTES] [--warm-up SECONDS]\n", stderr);
        return 2;
    }
    uint64_t rounds = args_number("COUNT", words[1], 1, UINT64_MAX / 2);

    struct warm_up warm = warm_up_begin(warm_up);
    for (; warm_up_goes_on(&warm); warm.operations++)
        round_of(size, 1);
    double start = timing_seconds();
    for (uint64_t i = 0; i < rounds; i++)
        round_of(size, (char)i);
    double seconds = timing_seconds() - start;
    workload_throughput(rounds, seconds);
    warm_up_print(&warm);
    return 0;
}
