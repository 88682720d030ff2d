/* include/hakmem.h: threads that live as long as an input, each with a part of it, and hand blocks to each other. */
#include <pthread.h>
#include <stdatomic.h>

#include "blocks.h"
#include "check.h"

enum { THREADS = 3, PLACES = 32 };

static struct player {
    struct blocks blocks;
    struct input input;
    bool frees_its_own; /* else what it holds at its end is freed by another thread, after it */
    pthread_t thread;
} players[THREADS];

static struct shadow empty[PLACES]; /* what the exchange starts with */
static _Atomic(struct shadow *) exchange[PLACES];

static void trade(struct blocks *blocks, struct shadow **held, struct input *input)
{
    (void)blocks;
    *held = atomic_exchange_explicit(&exchange[input_below(input, PLACES)], *held, memory_order_acq_rel);
}

static void *play(void *argument)
{
    struct player *player = argument;
    blocks_play(&player->blocks, &player->input);
    if (player->frees_its_own)
        blocks_free_all(&player->blocks);
    return NULL;
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    blocks_start();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    uint8_t who_frees = input_byte(&input);
    size_t part = (size_t)(input.end - input.at) / THREADS;
    for (size_t i = 0; i < PLACES; i++)
        exchange[i] = &empty[i];
    for (unsigned i = 0; i < THREADS; i++) {
        struct player *player = &players[i];
        blocks_init(&player->blocks, i + 1);
        player->blocks.more = trade;
        player->input = (struct input){input.at + i * part, input.at + (i + 1) * part};
        player->frees_its_own = (who_frees >> i & 1) != 0;
        CHECK(pthread_create(&player->thread, NULL, play, player) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(players[i].thread, NULL) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        blocks_free_all(&players[i].blocks);
    for (size_t i = 0; i < PLACES; i++)
        blocks_free(exchange[i]);
    return 0;
}
