/*
 * oscillate ROUNDS [--bytes B] [--period-ms P]
 *
 * Memory that goes up and down: in each round blocks of 64 to 4096 bytes (each doubling as likely as any other) are
 * allocated and written whole until they have B bytes (default 200 MiB), then all are freed, in the order they came;
 * then the program sleeps until P ms (default 100) have passed since the round began, or until half of P has passed
 * since its end if that is later. An allocator that gives back at once what is wanted again in a moment pays for it
 * here. An operation is a block's whole life; the sleeps do not count.
 *
 * Also prints Extra = {"minor_faults": those of the process after the first round, "rounds": R after the first}.
 */
#include <sys/resource.h>

#include "workload.h"

enum { LEAST = 64, MOST = 4096 };

static uint64_t minor_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt;
}

/* Returns how many blocks. They are the same in each round, so the table's own pages are touched in the first. */
static uint64_t up_and_down(struct block *table, uint64_t bytes)
{
    uint64_t state = workload_seed(1, 0);
    uint64_t blocks = 0;
    for (uint64_t live = 0; live < bytes; blocks++) {
        struct block block = {.size = workload_size(random_next(&state), LEAST, MOST)};
        block.data = malloc(block.size);
        if (block.data == NULL)
            workload_fail("out of memory");
        memset(block.data, block_mark(block), block.size);
        table[blocks] = block;
        live += block.size;
    }
    for (uint64_t i = 0; i < blocks; i++) {
        char mark = block_mark(table[i]);
        if (table[i].data[0] != mark || table[i].data[table[i].size - 1] != mark)
            workload_fail("a block has lost its content");
        free(table[i].data);
    }
    return blocks;
}

static void rest(double busy, double period)
{
    double seconds = period - busy > period / 2 ? period - busy : period / 2;
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

int main(int count, char **words)
{
    uint64_t bytes = 200 << 20;
    uint64_t period_ms = 100;
    const struct workload_option options[] = {
        {"--bytes", &bytes, 1, UINT64_C(1) << 34},
        {"--period-ms", &period_ms, 0, 1000000},
    };
    if (count < 2 || !workload_options(count, words, 2, options, 2)) {
        fputs("usage: oscillate ROUNDS [--bytes B] [--period-ms P]\n", stderr);
        return 2;
    }
    uint64_t rounds = args_number("ROUNDS", words[1], 1, 1000000);
    struct block *table = workload_table((bytes / LEAST + 1) * sizeof *table);
    uint64_t blocks = 0;
    uint64_t faults = 0;
    double busy = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        double start = timing_seconds();
        blocks += up_and_down(table, bytes);
        double seconds = timing_seconds() - start;
        busy += seconds;
        if (round == 0)
            faults = minor_faults();
        if (round + 1 < rounds)
            rest(seconds, (double)period_ms * 1e-3);
    }
    faults = minor_faults() - faults;
    workload_throughput(blocks, busy);
    printf("Extra = {\"minor_faults\": %llu, \"rounds\": %llu}\n", (unsigned long long)faults,
           (unsigned long long)rounds - 1);
    return 0;
}
