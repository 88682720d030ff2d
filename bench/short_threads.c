/*
 * short_threads COUNT SEED [--at-once N]
 *
 * COUNT threads, at most N (default 4) at once, with short lives: each frees what an earlier thread has left, then
 * allocates 200 to 400 blocks of 16 to 4096 bytes (each doubling as likely as any other), frees about seven of eight
 * in random order, leaves the others to a later thread, and ends. The first and last byte of a block are written, and
 * checked when it is freed. An operation is a malloc or a free; starting the threads is part of the time.
 */
#include "workload.h"

enum { FEWEST = 200, SPREAD = 201, KEPT_OF = 8, LEAST = 16, MOST = 4096 };

/* Threads of one lane follow each other, so what they leave needs no lock. */
struct lane {
    pthread_t thread;
    uint64_t state;
    uint64_t operations;
    uint64_t left;
    struct block block[FEWEST + SPREAD]; /* `left` of them between two threads */
};

static void *live(void *argument)
{
    struct lane *lane = argument;
    for (uint64_t i = 0; i < lane->left; i++)
        block_drop(lane->block[i]);
    uint64_t blocks = FEWEST + random_below(random_next(&lane->state), SPREAD);
    for (uint64_t i = 0; i < blocks; i++)
        lane->block[i] = block_take(workload_size(random_next(&lane->state), LEAST, MOST));
    lane->operations += lane->left + blocks;
    uint64_t kept = blocks / KEPT_OF;
    for (lane->left = blocks; lane->left > kept; lane->left--) {
        struct block *any = &lane->block[random_below(random_next(&lane->state), lane->left)];
        block_drop(*any);
        *any = lane->block[lane->left - 1];
    }
    lane->operations += blocks - kept;
    return NULL;
}

int main(int count, char **words)
{
    uint64_t lanes = 4;
    const struct workload_option options[] = {{"--at-once", &lanes, 1, 1024}};
    if (count < 3 || !workload_options(count, words, 3, options, 1)) {
        fputs("usage: short_threads COUNT SEED [--at-once N]\n", stderr);
        return 2;
    }
    uint64_t threads = args_number("COUNT", words[1], 1, UINT32_MAX);
    uint64_t seed = args_number("SEED", words[2], 1, UINT64_MAX / 2);
    if (lanes > threads)
        lanes = threads;
    struct lane *lane = calloc(lanes, sizeof *lane);
    if (lane == NULL)
        workload_fail("out of memory");
    for (uint64_t i = 0; i < lanes; i++)
        lane[i].state = workload_seed(seed, i);

    double start = timing_seconds();
    for (uint64_t i = 0; i < threads; i++) {
        struct lane *next = &lane[i % lanes];
        if (i >= lanes)
            pthread_join(next->thread, NULL);
        next->thread = workload_thread(live, next);
    }
    for (uint64_t i = 0; i < lanes; i++)
        pthread_join(lane[i].thread, NULL);
    double seconds = timing_seconds() - start;

    uint64_t operations = 0;
    for (uint64_t i = 0; i < lanes; i++) {
        operations += lane[i].operations;
        for (uint64_t k = 0; k < lane[i].left; k++)
            block_drop(lane[i].block[k]);
    }
    workload_throughput(operations, seconds);
    free(lane);
    return 0;
}
