/*
 * sharing active|passive COUNT [--threads N] [--size BYTES]
 *
 * False sharing: small blocks of different threads in one cache line, which then wanders between the processors.
 * N threads (default 2) share COUNT rounds: each allocates a block of BYTES (default 8), writes to it 1000 times
 * (rounded up to whole blocks) and frees it. Active: that is all; an allocator fails that serves several threads from
 * one line. Passive: before, the main thread allocates one block for each thread, in a row, and each thread begins by
 * freeing its own; an allocator fails that then serves the thread from that line. The written bytes are checked. An
 * operation is a round.
 */
#include "workload.h"

enum { WRITES = 1000 };

struct worker {
    pthread_t thread;
    uint64_t rounds;
    size_t size;
    char *given; /* NULL: active */
    pthread_barrier_t *begin;
};

/* Each write reads what the last one wrote, as a counter in the block would: a store alone could wait in a buffer. */
static void write_often(volatile unsigned char *block, size_t size)
{
    size_t passes = (WRITES + size - 1) / size;
    for (size_t i = 0; i < size; i++)
        block[i] = 0;
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < size; i++)
            block[i] = (unsigned char)(block[i] + 1);
    if (block[0] != (unsigned char)passes || block[size - 1] != (unsigned char)passes)
        workload_fail("a block has lost its content");
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    pthread_barrier_wait(worker->begin);
    free(worker->given);
    for (uint64_t i = 0; i < worker->rounds; i++) {
        unsigned char *block = malloc(worker->size);
        if (block == NULL)
            workload_fail("out of memory");
        write_often(block, worker->size);
        free(block);
    }
    return NULL;
}

/* All before the first thread starts: its stack and tables must not come between the blocks. */
static void give_blocks(struct worker *workers, uint64_t threads)
{
    for (uint64_t i = 0; i < threads; i++) {
        workers[i].given = malloc(workers[i].size);
        if (workers[i].given == NULL)
            workload_fail("out of memory");
        workers[i].given[0] = 1;
    }
}

static void usage(void)
{
    fputs("usage: sharing active|passive COUNT [--threads N] [--size BYTES]\n", stderr);
    exit(2);
}

int main(int count, char **words)
{
    uint64_t threads = 2;
    uint64_t size = 8;
    const struct workload_option options[] = {{"--threads", &threads, 1, 1024}, {"--size", &size, 1, 1 << 20}};
    if (count < 3 || !workload_options(count, words, 3, options, 2))
        usage();
    bool passive = strcmp(words[1], "passive") == 0;
    if (!passive && strcmp(words[1], "active") != 0)
        usage();
    uint64_t rounds = args_number("COUNT", words[2], 1, UINT64_MAX / 2);

    struct worker *workers = calloc(threads, sizeof *workers);
    if (workers == NULL)
        workload_fail("out of memory");
    pthread_barrier_t begin;
    pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
    for (uint64_t i = 0; i < threads; i++)
        workers[i] = (struct worker){
            .rounds = rounds / threads + (i < rounds % threads), .size = size, .begin = &begin};
    if (passive)
        give_blocks(workers, threads);
    for (uint64_t i = 0; i < threads; i++)
        workers[i].thread = workload_thread(work, &workers[i]);
    double start = timing_seconds(); /* before the barrier: after it this thread may have to wait for a processor */
    pthread_barrier_wait(&begin);
    for (uint64_t i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    double seconds = timing_seconds() - start;
    pthread_barrier_destroy(&begin);
    workload_throughput(rounds, seconds);
    free(workers);
    return 0;
}
