/*
 * larson SLEEP MIN MAX CHUNKS ROUNDS SEED THREADS
 *
 * The server of Larson and Krishnan (ISMM 1998): each thread owns CHUNKS blocks of MIN to MAX bytes and
 * replaces one at random, CHUNKS * ROUNDS times; then it hands its blocks to a new thread and ends, so that
 * blocks are freed by threads that did not allocate them. The first blocks are the main thread's. Stops after
 * SLEEP seconds and prints operations per second; one operation is a replacement (a free and a malloc), as it
 * always was in this benchmark.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "timing.h"

struct plan {
    uint64_t seconds, least, spread, chunks, rounds, seed, threads;
};

struct worker {
    const struct plan *plan;
    uint64_t state;
    uint64_t operations;
    char *block[];
};

static atomic_bool stopping;
static atomic_int running;

static void *take_block(struct worker *worker, uint64_t random)
{
    size_t size = worker->plan->least + random_below(random << 32, worker->plan->spread);
    char *block = malloc(size);
    if (block == NULL) {
        fputs("larson: out of memory\n", stderr);
        exit(1);
    }
    block[0] = 1;
    block[size - 1] = 2;
    return block;
}

static void start_thread(struct worker *worker);

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct plan *plan = worker->plan;
    uint64_t turns = plan->chunks * plan->rounds;
    uint64_t done = 0;
    for (; done < turns && !atomic_load_explicit(&stopping, memory_order_relaxed); done++) {
        uint64_t random = random_next(&worker->state);
        char **slot = &worker->block[random_below(random, plan->chunks)];
        free(*slot);
        *slot = take_block(worker, random);
    }
    worker->operations += done;
    if (atomic_load(&stopping))
        atomic_fetch_sub(&running, 1);
    else
        start_thread(worker);
    return NULL;
}

static void start_thread(struct worker *worker)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, work, worker);
    if (error != 0) {
        fprintf(stderr, "larson: cannot start a thread: %s\n", strerror(error));
        exit(1);
    }
    pthread_detach(thread);
}

static struct worker *make_worker(const struct plan *plan, uint64_t number)
{
    struct worker *worker = calloc(1, sizeof *worker + plan->chunks * sizeof(char *));
    if (worker == NULL) {
        fputs("larson: out of memory\n", stderr);
        exit(1);
    }
    worker->plan = plan;
    worker->state = plan->seed + number * 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < plan->chunks; i++)
        worker->block[i] = take_block(worker, random_next(&worker->state));
    return worker;
}

int main(int count, char **words)
{
    if (count != 8) {
        fputs("usage: larson SLEEP MIN MAX CHUNKS ROUNDS SEED THREADS\n", stderr);
        return 2;
    }
    struct plan plan = {
        .seconds = args_number("SLEEP", words[1], 1, 86400),
        .least = args_number("MIN", words[2], 1, 1 << 30),
        .chunks = args_number("CHUNKS", words[4], 1, 1 << 24),
        .rounds = args_number("ROUNDS", words[5], 1, 1 << 30),
        .seed = args_number("SEED", words[6], 1, UINT64_MAX / 2),
        .threads = args_number("THREADS", words[7], 1, 4096),
    };
    plan.spread = args_number("MAX", words[3], plan.least, 1 << 30) - plan.least + 1;
    struct worker **workers = calloc(plan.threads, sizeof *workers);
    if (workers == NULL)
        return 1;
    for (uint64_t i = 0; i < plan.threads; i++)
        workers[i] = make_worker(&plan, i);
    atomic_store(&running, (int)plan.threads);
    double begin = timing_seconds();
    for (uint64_t i = 0; i < plan.threads; i++)
        start_thread(workers[i]);
    sleep((unsigned)plan.seconds);
    atomic_store(&stopping, true);
    double seconds = timing_seconds() - begin;
    while (atomic_load(&running) > 0)
        usleep(1000);
    uint64_t operations = 0;
    for (uint64_t i = 0; i < plan.threads; i++)
        operations += workers[i]->operations;
    printf("Throughput = %.0f operations per second (%.3f s)\n", (double)operations / seconds, seconds);
    return 0;
}
