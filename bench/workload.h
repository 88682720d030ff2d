/* What the workloads with threads, lifetimes and idle times share: options, blocks that carry a mark, the result. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "args.h"
#include "timing.h"

static inline _Noreturn void workload_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

struct workload_option {
    const char *name; /* with its dashes */
    uint64_t *value;
    uint64_t least;
    uint64_t most;
};

/* Reads `--name N` pairs from words[first] on. False if a word is none of the options, or the last lacks its N. */
static inline bool workload_options(int count, char **words, int first, const struct workload_option *options,
                                    size_t known)
{
    for (int i = first; i < count; i += 2) {
        size_t which = 0;
        while (which < known && strcmp(words[i], options[which].name) != 0)
            which++;
        if (which == known || i + 1 == count)
            return false;
        const struct workload_option *option = &options[which];
        *option->value = args_number(option->name, words[i + 1], option->least, option->most);
    }
    return true;
}

/* A size from least to most (below 2^31, above least): each doubling is as likely as any other, as in real programs. */
static inline size_t workload_size(uint64_t random, size_t least, size_t most)
{
    unsigned doublings = 64 - (unsigned)__builtin_clzll((most - 1) / least);
    size_t floor = least << random_below(random, doublings);
    size_t size = floor + random_below(random << 32, floor);
    return size < most ? size : most;
}

struct block {
    char *data;
    size_t size; /* at least 2 */
};

static inline char block_mark(struct block block)
{
    return (char)((uintptr_t)block.data >> 4 ^ block.size);
}

/* Allocates a block and writes its first and last byte. */
static inline struct block block_take(size_t size)
{
    struct block block = {malloc(size), size};
    if (block.data == NULL)
        workload_fail("out of memory");
    block.data[0] = block_mark(block);
    block.data[size - 1] = (char)~block_mark(block);
    return block;
}

/* Frees it, if both bytes are as they were written. */
static inline void block_drop(struct block block)
{
    if (block.data[0] != block_mark(block) || block.data[block.size - 1] != (char)~block_mark(block))
        workload_fail("a block has lost its content");
    free(block.data);
}

static inline pthread_t workload_thread(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, work, argument);
    if (error != 0) {
        fprintf(stderr, "%s: cannot start a thread: %s\n", program_invocation_short_name, strerror(error));
        exit(1);
    }
    return thread;
}

/* Zeroed memory that the allocator under test knows nothing of. */
static inline void *workload_table(size_t bytes)
{
    void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        workload_fail("out of memory");
    return table;
}

/* A seed of its own for each thread; never 0. */
static inline uint64_t workload_seed(uint64_t seed, uint64_t thread)
{
    uint64_t mixed = (seed + thread) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
    return mixed != 0 ? mixed : 1;
}

static inline void workload_throughput(uint64_t operations, double seconds)
{
    printf("Throughput = %.0f operations per second (%.3f s)\n", (double)operations / seconds, seconds);
}

/* Time that goes by before operations count; it says how many of them there were. */
struct warm_up {
    double start;
    double end;
    uint64_t operations;
};

static inline struct workload_option workload_warm_up(uint64_t *seconds)
{
    return (struct workload_option){"--warm-up", seconds, 0, 1000};
}

static inline struct warm_up warm_up_begin(uint64_t seconds)
{
    double start = timing_seconds();
    return (struct warm_up){start, start + (double)seconds, 0};
}

static inline bool warm_up_goes_on(const struct warm_up *warm)
{
    return warm->end > warm->start && timing_seconds() < warm->end;
}

static inline void warm_up_print(const struct warm_up *warm)
{
    if (warm->operations > 0)
        printf("Extra = {\"warm_up_rate\": %.1f}\n", (double)warm->operations / (warm->end - warm->start));
}

#endif
