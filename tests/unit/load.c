#include "load.h"

#include "check.h"
#include "family.h"
#include "random.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Large blocks are written and verified in samples: a page's first and some in between. */
static size_t stride(size_t bytes)
{
    return bytes <= 4096 ? 1 : 1021;
}

static unsigned char pattern(uint64_t seed, size_t at)
{
    return (unsigned char)((seed + at) * 0x9e3779b97f4a7c15u >> 56);
}

static void fill(const struct load_block *block)
{
    for (size_t i = 0; i < block->bytes; i += stride(block->bytes)) {
        block->at[i] = pattern(block->seed, i);
    }
    block->at[block->bytes - 1] = pattern(block->seed, block->bytes - 1);
}

static void verify(const struct load_block *block)
{
    for (size_t i = 0; i < block->bytes; i += stride(block->bytes)) {
        CHECK(block->at[i] == pattern(block->seed, i));
    }
    CHECK(block->at[block->bytes - 1] == pattern(block->seed, block->bytes - 1));
}

static void adopt(struct load *load, struct load_block *block, void *at, size_t bytes)
{
    *block = (struct load_block){at, bytes, random_next(&load->random)};
    load->live_bytes += bytes;
    fill(block);
}

static void note_refusal(struct load *load)
{
    CHECK(errno == ENOMEM);
    load->refused++;
}

static size_t random_bytes(uint64_t *random)
{
    switch (random_below(random, 40)) {
    case 0:
        return 1 + random_below(random, 1u << 21);
    case 1:
    case 2:
        return 1 + random_below(random, 200000);
    case 3:
    case 4:
    case 5:
        return 1 + random_below(random, 20000);
    default:
        return 1 + random_below(random, 500);
    }
}

static void allocate(struct load *load, struct load_block *block)
{
    const size_t bytes = random_bytes(&load->random);
    void *at = NULL;
    errno = 0;
    switch (random_below(&load->random, 8)) {
    case 0:
        at = family.calloc(1, bytes);
        for (size_t i = 0; at != NULL && i < bytes; i += stride(bytes)) {
            CHECK(((unsigned char *)at)[i] == 0);
        }
        break;
    case 1: {
        const size_t align = (size_t)16 << random_below(&load->random, 14);
        errno = family.posix_memalign(&at, align, bytes);
        CHECK(errno == 0 || errno == ENOMEM);
        at = errno == 0 ? at : NULL;
        CHECK((uintptr_t)at % align == 0);
        break;
    }
    default:
        at = family.malloc(bytes);
    }
    if (at == NULL) {
        note_refusal(load);
    } else {
        adopt(load, block, at, bytes);
    }
}

static void release(struct load *load, struct load_block *block)
{
    if (block->at == NULL) {
        return;
    }
    verify(block);
    load->live_bytes -= block->bytes;
    family.free(block->at);
    block->at = NULL;
}

/* The part that both sizes have keeps its content; a block that could not be resized, all of it. */
static void resize(struct load *load, struct load_block *block)
{
    const size_t old = block->bytes;
    const size_t bytes = random_below(&load->random, 2) == 0 ? old + old / 2 + 1 : 1 + random_bytes(&load->random);
    const size_t kept = bytes < old ? bytes : old;
    errno = 0;
    unsigned char *at = family.realloc(block->at, bytes);
    if (at == NULL) {
        note_refusal(load);
        verify(block);
        return;
    }
    for (size_t i = 0; i < kept; i += stride(old)) {
        CHECK(at[i] == pattern(block->seed, i));
    }
    load->live_bytes -= old;
    adopt(load, block, at, bytes);
}

void load_run(struct load *load, size_t operations, size_t most)
{
    for (size_t i = 0; i < operations; i++) {
        struct load_block *block = &load->blocks[random_below(&load->random, LOAD_BLOCKS / 4)];
        if (block->at == NULL && load->live_bytes < most) {
            allocate(load, block);
        } else if (block->at != NULL && block->bytes < (8u << 20) && load->live_bytes < most &&
                   random_below(&load->random, 3) == 0) {
            resize(load, block);
        } else {
            release(load, block);
        }
    }
}

bool load_fill(struct load *load, size_t bytes, size_t most)
{
    for (size_t i = 0; i < LOAD_BLOCKS && load->live_bytes < most; i++) {
        if (load->blocks[i].at != NULL) {
            continue;
        }
        errno = 0;
        void *at = family.malloc(bytes);
        if (at == NULL) {
            note_refusal(load);
            return true;
        }
        adopt(load, &load->blocks[i], at, bytes);
    }
    return false;
}

void load_check(const struct load *load)
{
    for (size_t i = 0; i < LOAD_BLOCKS; i++) {
        if (load->blocks[i].at != NULL) {
            verify(&load->blocks[i]);
        }
    }
}

void load_drain(struct load *load)
{
    for (size_t i = 0; i < LOAD_BLOCKS; i++) {
        release(load, &load->blocks[i]);
    }
    CHECK(load->live_bytes == 0);
}

static pthread_barrier_t meeting;
static void (*playing)(struct load *load, bool leads);

static void *player(void *load)
{
    playing(load, false);
    load_drain(load);
    return NULL;
}

void load_play(struct load loads[LOAD_THREADS], void (*play)(struct load *load, bool leads))
{
    pthread_t threads[LOAD_THREADS];
    playing = play;
    CHECK(pthread_barrier_init(&meeting, NULL, LOAD_THREADS) == 0);
    for (size_t i = 0; i < LOAD_THREADS; i++) {
        loads[i].random = i + 1;
    }
    for (size_t i = 1; i < LOAD_THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, player, &loads[i]) == 0);
    }
    play(&loads[0], true);
    load_drain(&loads[0]);
    for (size_t i = 1; i < LOAD_THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

void load_meet(void)
{
    pthread_barrier_wait(&meeting);
}
