/*
 * vm COUNT [--size BYTES]
 *
 * COUNT times one block of --size bytes (default 2 MiB) is allocated, one byte is written in each 4 KiB of it, and it
 * is freed. Shows what an allocator asks of the kernel for large blocks that come and go. An operation is such a round.
 */
#include "workload.h"

enum { PAGE = 4096 };

int main(int count, char **words)
{
    uint64_t size = 2 << 20;
    const struct workload_option options[] = {{"--size", &size, 1, UINT64_C(1) << 40}};
    if (count < 2 || !workload_options(count, words, 2, options, 1)) {
        fputs("usage: vm COUNT [--size BYTES]\n", stderr);
        return 2;
    }
    uint64_t rounds = args_number("COUNT", words[1], 1, UINT64_MAX / 2);

    double start = timing_seconds();
    for (uint64_t i = 0; i < rounds; i++) {
        /* Volatile, or the compiler sees that nobody reads the block and leaves out the round. */
        volatile char *block = malloc(size);
        if (block == NULL)
            workload_fail("out of memory");
        for (uint64_t at = 0; at < size; at += PAGE)
            block[at] = (char)i;
        free((void *)block);
    }
    double seconds = timing_seconds() - start;
    workload_throughput(rounds, seconds);
    return 0;
}
