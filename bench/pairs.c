/*
 * pairs COUNT SIZE
 *
 * Allocates and frees a block of SIZE bytes COUNT times: the hit path and nothing else, for counting
 * instructions. The cost of a pair, loop and PLT included, is the difference of two runs:
 *
 *     valgrind --tool=callgrind --callgrind-out-file=/dev/null pairs 2000000 128
 *     valgrind --tool=callgrind --callgrind-out-file=/dev/null pairs 1000000 128
 *
 * with LD_PRELOAD set for the allocator; (first - second) / 1000000.
 */
#include "args.h"
#include "timing.h"

int main(int count, char **words)
{
    if (count != 3) {
        fputs("usage: pairs COUNT SIZE\n", stderr);
        return 2;
    }
    uint64_t pairs = args_number("COUNT", words[1], 1, UINT64_MAX / 4);
    size_t size = args_number("SIZE", words[2], 0, UINT32_MAX);
    double start = timing_seconds();
    for (uint64_t i = 0; i < pairs; i++) {
        void *block = malloc(size);
        __asm__ volatile("" : "+r"(block) : : "memory"); /* or the compiler would drop the pair */
        free(block);
    }
    double seconds = timing_seconds() - start;
    printf("Throughput = %.0f operations per second (%.3f s)\n", 2.0 * (double)pairs / seconds, seconds);
    return 0;
}
