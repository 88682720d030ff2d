/*
 * aligned COUNT SEED
 *
 * Aligned blocks in a set of live ones. COUNT times one of 2048 slots is picked at random: a full one is freed, an
 * empty one gets a block of 8 bytes to 32 KiB (each doubling as likely as any other), aligned to a power of two from
 * 16 to 4096, or, once in 256 times, to 64 KiB. posix_memalign and aligned_alloc take turns at random. The alignment
 * is checked, the first and last byte are written, and checked when the block is freed. An operation is an allocation
 * or a free.
 */
#include "workload.h"

enum { SLOTS = 2048, LEAST = 8, MOST = 32 << 10 };
enum { LEAST_ALIGNMENT = 16, ALIGNMENTS = 9, WIDE = 64 << 10, WIDE_ONE_IN = 256 };

static size_t random_alignment(uint64_t random)
{
    if (random_below(random, WIDE_ONE_IN) == 0)
        return WIDE;
    return (size_t)LEAST_ALIGNMENT << random_below(random << 32, ALIGNMENTS);
}

static struct block take(uint64_t *state)
{
    size_t size = workload_size(random_next(state), LEAST, MOST);
    uint64_t random = random_next(state);
    size_t alignment = random_alignment(random);
    void *data = NULL;
    if ((random & 1) == 0) {
        if (posix_memalign(&data, alignment, size) != 0)
            data = NULL;
    } else {
        /* C11 wants a multiple of the alignment. */
        size = (size + alignment - 1) & ~(alignment - 1);
        data = aligned_alloc(alignment, size);
    }
    if (data == NULL)
        workload_fail("out of memory");
    /* The compiler may believe what it knows of these functions, and leave out the check. */
    __asm__ volatile("" : "+r"(data));
    if (((uintptr_t)data & (alignment - 1)) != 0)
        workload_fail("a block is not aligned");
    struct block block = {data, size};
    block.data[0] = block_mark(block);
    block.data[size - 1] = (char)~block_mark(block);
    return block;
}

int main(int count, char **words)
{
    if (count != 3) {
        fputs("usage: aligned COUNT SEED\n", stderr);
        return 2;
    }
    uint64_t operations = args_number("COUNT", words[1], 1, UINT64_MAX / 2);
    uint64_t state = workload_seed(args_number("SEED", words[2], 1, UINT64_MAX / 2), 0);
    struct block *slots = workload_table(SLOTS * sizeof *slots);

    double start = timing_seconds();
    for (uint64_t i = 0; i < operations; i++) {
        struct block *slot = &slots[random_below(random_next(&state), SLOTS)];
        if (slot->data != NULL) {
            block_drop(*slot);
            slot->data = NULL;
        } else {
            *slot = take(&state);
        }
    }
    double seconds = timing_seconds() - start;
    workload_throughput(operations, seconds);
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].data != NULL)
            block_drop(slots[i]);
    return 0;
}
