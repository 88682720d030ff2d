/*
 * The main thread starts the round's threads, looks at resident memory while they work, and joins them. The threads
 * meet at a barrier before each step, in which either all run one phase or each runs one of its own choice.
 */
#include "round.h"

#include "check.h"
#include "phases.h"
#include "process.h"
#include "public.h"
#include "random.h"
#include "scale.h"
#include "where.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    STEPS_MOST = 8,
    LOOK_MS = 5,
    GIVES = 20,
    GIVE_MS = 50,
    SETTLED_BYTES = 8 << 20,
    HANG_MS = 240000,
    LEFT = 64, /* blocks that an ending thread leaves to the pool */
    KEPT = 128,
    KEPT_SIZE_MOST = 1024,
    WORK = 250000, /* operations of all threads in a step */
    IDLE_MOST_MS = 3000,
    IDLE_ALONE_PART = 10, /* a thread that idles while others work keeps these waiting: it does so for a tenth of that */
};
static const size_t MIB = (size_t)1 << 20;
static const size_t LARGE_MIB = 256;

struct worker {
    pthread_t id;
    struct hand hand;
    _Atomic(const char *) phase;
};

static const char waiting[] = "barrier";
static const struct options *options;
static struct worker workers[THREADS_MOST];
static struct ledger kept;
static atomic_size_t working;

/* The round's plan, as the threads see it. */
static pthread_barrier_t barrier;
static size_t steps;
static const struct phase *together[STEPS_MOST]; /* NULL: each its own */
static unsigned idle_most_ms;
static uint64_t deadline;

static uint64_t mixed(size_t round, size_t step, size_t thread)
{
    uint64_t state = options->seed ^ ((uint64_t)round << 32) ^ (step << 16) ^ thread;
    return random_next(&state);
}

static void leave_some(struct hand *hand)
{
    for (size_t i = 0; i < LEFT && hand->ledger.count > 0; i++) {
        const size_t index = random_below(&hand->random, hand->ledger.count);
        if (hand->ledger.blocks[index].size <= KEPT_SIZE_MOST) {
            hand_leave(hand, index);
        }
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct hand *hand = &worker->hand;
    for (size_t step = 0; step < steps; step++) {
        worker->phase = waiting;
        pthread_barrier_wait(&barrier);
        hand->random = mixed(hand->round, step + 1, hand->thread + 1);
        const struct phase *own = phase_any(&hand->random, options->forks);
        const struct phase *phase = together[step] != NULL ? together[step] : own;
        hand->idle_most_ms = together[step] != NULL ? idle_most_ms : idle_most_ms / IDLE_ALONE_PART;
        worker->phase = phase->name;
        where_set(hand->round, phase->name, hand->thread);
        if (process_now_ms() < deadline) {
            phase->run(hand);
        }
    }
    where_set(hand->round, "end", hand->thread);
    leave_some(hand);
    hand_free_all(hand);
    atomic_fetch_sub(&working, 1);
    return NULL;
}

/* Threads, bytes and phases. The second round has all threads, so that the first three tell what so many heaps keep. */
static struct round plan(size_t number)
{
    uint64_t random = mixed(number, 0, 0);
    struct round round = {.number = number, .threads = 1 + random_below(&random, options->threads)};
    if (number == 2) {
        round.threads = options->threads;
    }
    const size_t peak_bytes = (16 + random_below(&random, 81)) * MIB;
    const double idle_ms = options->minutes * 60000 / 20;
    idle_most_ms = idle_ms < IDLE_MOST_MS ? (unsigned)idle_ms : IDLE_MOST_MS;
    for (size_t i = 0; i < round.threads; i++) {
        workers[i].hand = (struct hand){
            .ledger = workers[i].hand.ledger,
            .share = peak_bytes / round.threads,
            .large_share = LARGE_MIB * MIB / round.threads,
            .work = 100 + scaled_work(WORK) / round.threads,
            .thread = i,
            .round = number,
        };
    }
    steps = 3 + random_below(&random, STEPS_MOST - 2);
    together[0] = &phase_grow;
    for (size_t i = 1; i < steps; i++) {
        const size_t dice = random_below(&random, 6);
        const struct phase *any = phase_any(&random, options->forks);
        together[i] = dice == 0 ? &phase_idle : dice < 3 ? any : NULL;
    }
    const size_t limit = random_below(&random, 6);
    const size_t limit_bytes = (16 + random_below(&random, 49)) * MIB;
    if (limit < 2 && number != 2 && public_may_set_limits()) {
        round.soft_bytes = limit_bytes;
        round.hard_bytes = limit == 0 ? 2 * limit_bytes : 0;
    }
    for (size_t i = 0; i < round.threads; i++) {
        workers[i].hand.hard_bytes = round.hard_bytes;
    }
    return round;
}

static void start(struct round *round)
{
    CHECK(pthread_barrier_init(&barrier, NULL, (unsigned)round->threads) == 0);
    atomic_store(&working, round->threads);
    for (size_t i = 0; i < round->threads; i++) {
        CHECK(pthread_create(&workers[i].id, NULL, work, &workers[i]) == 0);
    }
    if (round->soft_bytes != 0) {
        block_may_fail(round->hard_bytes != 0);
        public_set_limit(round->soft_bytes, round->hard_bytes);
    }
}

/* Names one of the threads that do not come to the barrier. */
static void tell_hang(const struct round *round)
{
    for (size_t i = 0; i < round->threads; i++) {
        if (workers[i].phase != waiting) {
            where_set(round->number, workers[i].phase, i);
        }
    }
    failed(NULL, "the round does not end");
}

static void watch(struct round *round)
{
    const uint64_t began_ms = process_now_ms();
    while (atomic_load(&working) > 0) {
        const size_t now = process_rss_bytes();
        round->peak_bytes = now > round->peak_bytes ? now : round->peak_bytes;
        if (process_now_ms() - began_ms > HANG_MS) {
            tell_hang(round);
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

static void join(struct round *round)
{
    for (size_t i = 0; i < round->threads; i++) {
        CHECK(pthread_join(workers[i].id, NULL) == 0);
        round->blocks += workers[i].hand.made;
        ledger_drop(&workers[i].hand.ledger);
    }
    CHECK(pthread_barrier_destroy(&barrier) == 0);
    round->refused = block_refusals();
    if (public_may_set_limits()) {
        public_set_limit(0, 0);
    }
    if (public_may_set_mode()) {
        public_set_mode("balanced");
    }
    block_may_fail(false);
}

/* Of what is in the pool, `count` small blocks stay there for the next round. */
static void empty_pool(uint64_t random, size_t count)
{
    struct block block;
    while (pool_take(&block, &random)) {
        if (kept.count < count && block.size <= KEPT_SIZE_MOST) {
            ledger_put(&kept, &block);
        } else {
            block_free(&block);
        }
    }
    pool_drop();
    while (kept.count > 0) {
        block = ledger_take(&kept, kept.count - 1);
        block_check(&block);
        CHECK(pool_give(&block));
    }
}

void rounds_begin(const struct options *of)
{
    options = of;
    pool_init();
    ledger_init(&kept);
    for (size_t i = 0; i < options->threads; i++) {
        ledger_init(&workers[i].hand.ledger);
    }
}

/* Resident bytes afterwards. What the purger's thread is about to give back when it is called, hak_purge leaves to it. */
static size_t give_all_back(void)
{
    size_t least = SIZE_MAX;
    for (int i = 0; i < GIVES && least > SETTLED_BYTES; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = GIVE_MS * 1000000}, NULL);
        public_purge(true);
        const size_t bytes = process_rss_bytes();
        least = bytes < least ? bytes : least;
    }
    return least;
}

struct round round_run(size_t number, uint64_t deadline_ms)
{
    deadline = deadline_ms;
    struct round round = plan(number);
    where_set(number, "start", 0);
    start(&round);
    watch(&round);
    join(&round);
    where_set(number, "after", 0);
    empty_pool(mixed(number, 0, 1), KEPT);
    round.after_bytes = give_all_back();
    return round;
}

void rounds_end(void)
{
    empty_pool(0, 0);
}
