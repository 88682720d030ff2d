/*
 * handover KIND COUNT SEED [--threads N]
 *
 * Blocks that one thread allocates and another frees. They travel in batches of 256 through mailboxes that hold 16.
 * A thread with a full or an empty mailbox sleeps until it is half empty or half full (in a ring: no longer empty),
 * so that sleeping and waking are a small part of what is measured. Sizes are 16 to 4096 bytes, each doubling as
 * likely as any other. The first and last byte are written by the one thread and checked by the other. KIND is
 *
 *   oneway     one thread allocates, one frees
 *   ring       N threads (default 4): each frees what its left neighbour sent and allocates as much for the right
 *   manytoone  N threads (default 4) allocate, one more frees
 *
 * COUNT blocks in all, rounded up to whole batches of each thread that allocates. An operation is a malloc or a free.
 */
#include "workload.h"

enum { BATCH = 256, DEPTH = 16, HALF = DEPTH / 2, LEAST = 16, MOST = 4096 };

struct batch {
    struct block block[BATCH];
};

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pthread_cond_t emptied;
    uint64_t enough; /* batches that wake the receiver */
    uint64_t last;   /* batches that are ever sent */
    uint64_t sent;
    uint64_t received;
    struct batch batch[DEPTH]; /* those from `received` to `sent`, modulo DEPTH */
};

struct worker {
    pthread_t thread;
    uint64_t state;
    uint64_t batches;
    struct mailbox *from;
    struct mailbox *to;
};

static void mailbox_send(struct mailbox *mailbox, const struct batch *batch)
{
    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->sent - mailbox->received == DEPTH)
        pthread_cond_wait(&mailbox->emptied, &mailbox->lock);
    mailbox->batch[mailbox->sent++ % DEPTH] = *batch;
    if (mailbox->sent - mailbox->received == mailbox->enough || mailbox->sent == mailbox->last)
        pthread_cond_signal(&mailbox->filled);
    pthread_mutex_unlock(&mailbox->lock);
}

static void mailbox_receive(struct mailbox *mailbox, struct batch *batch)
{
    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->sent == mailbox->received)
        pthread_cond_wait(&mailbox->filled, &mailbox->lock);
    *batch = mailbox->batch[mailbox->received++ % DEPTH];
    if (mailbox->sent - mailbox->received == HALF)
        pthread_cond_broadcast(&mailbox->emptied);
    pthread_mutex_unlock(&mailbox->lock);
}

static void send_new(struct worker *worker)
{
    struct batch batch;
    for (int i = 0; i < BATCH; i++)
        batch.block[i] = block_take(workload_size(random_next(&worker->state), LEAST, MOST));
    mailbox_send(worker->to, &batch);
}

static void free_received(struct worker *worker)
{
    struct batch batch;
    mailbox_receive(worker->from, &batch);
    for (int i = 0; i < BATCH; i++)
        block_drop(batch.block[i]);
}

static void *produce(void *argument)
{
    struct worker *worker = argument;
    for (uint64_t i = 0; i < worker->batches; i++)
        send_new(worker);
    return NULL;
}

static void *consume(void *argument)
{
    struct worker *worker = argument;
    for (uint64_t i = 0; i < worker->batches; i++)
        free_received(worker);
    return NULL;
}

/* There are never more than HALF batches for each mailbox of the ring, so one at least is not above that, and its
 * sender awake or waiting for a batch; nor are all empty. So the ring cannot stand still. */
static void *pass_on(void *argument)
{
    struct worker *worker = argument;
    uint64_t ahead = worker->batches < HALF ? worker->batches : HALF;
    for (uint64_t i = 0; i < ahead; i++)
        send_new(worker);
    for (uint64_t i = ahead; i < worker->batches; i++) {
        free_received(worker);
        send_new(worker);
    }
    for (uint64_t i = 0; i < ahead; i++)
        free_received(worker);
    return NULL;
}

static void usage(void)
{
    fputs("usage: handover oneway|ring|manytoone COUNT SEED [--threads N]\n", stderr);
    exit(2);
}

int main(int count, char **words)
{
    uint64_t threads = 4;
    const struct workload_option options[] = {{"--threads", &threads, 1, 1024}};
    if (count < 4 || !workload_options(count, words, 4, options, 1))
        usage();
    bool ring = strcmp(words[1], "ring") == 0;
    bool oneway = strcmp(words[1], "oneway") == 0;
    if ((!ring && !oneway && strcmp(words[1], "manytoone") != 0) || (oneway && count > 4))
        usage();
    uint64_t blocks = args_number("COUNT", words[2], 1, UINT64_MAX / 4);
    uint64_t seed = args_number("SEED", words[3], 1, UINT64_MAX / 2);
    uint64_t producers = oneway ? 1 : threads;
    uint64_t batches = (blocks + producers * BATCH - 1) / (producers * BATCH); /* of each */

    struct worker *workers = calloc(producers + 1, sizeof *workers);
    struct mailbox *mailboxes = calloc(producers, sizeof *mailboxes);
    if (workers == NULL || mailboxes == NULL)
        workload_fail("out of memory");
    for (uint64_t i = 0; i < producers; i++) {
        pthread_mutex_init(&mailboxes[i].lock, NULL);
        pthread_cond_init(&mailboxes[i].filled, NULL);
        pthread_cond_init(&mailboxes[i].emptied, NULL);
        mailboxes[i].enough = ring ? 1 : HALF;
        mailboxes[i].last = ring ? batches : batches * producers;
        workers[i] = (struct worker){
            .state = workload_seed(seed, i),
            .batches = batches,
            .from = &mailboxes[i],
            .to = &mailboxes[ring ? (i + 1) % producers : 0],
        };
    }
    workers[producers] = (struct worker){.batches = batches * producers, .from = &mailboxes[0]};

    double start = timing_seconds();
    for (uint64_t i = 0; i < producers; i++)
        workers[i].thread = workload_thread(ring ? pass_on : produce, &workers[i]);
    if (!ring)
        consume(&workers[producers]);
    for (uint64_t i = 0; i < producers; i++)
        pthread_join(workers[i].thread, NULL);
    double seconds = timing_seconds() - start;
    workload_throughput(2 * batches * producers * BATCH, seconds);
    free(mailboxes);
    free(workers);
    return 0;
}
