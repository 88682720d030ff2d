#include "actions.h"

#include "check.h"
#include "family.h"
#include "interval_set.h"
#include "random.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { EXCHANGE_PLACES = 256 };

static struct shadow exchange_shadows[EXCHANGE_PLACES]; /* the empty ones it starts with */
static _Atomic(struct shadow *) exchange[EXCHANGE_PLACES];

/* Mostly small, now and then several MiB: about 5 in 10 up to 128 bytes, 9 in 10 up to 2 KiB. */
static size_t random_size(uint64_t *random)
{
    static const size_t limits[] = {33, 129, 129, 129, 513, 513, 1025, 1025, 2049, 33000};
    const uint64_t choice = random_below(random, 1000);
    if (choice < 2) {
        return random_below(random, 5u << 20);
    }
    if (choice < 20) {
        return random_below(random, 300000);
    }
    return random_below(random, limits[choice % 10]);
}

static size_t random_alignment(uint64_t *random)
{
    const size_t limit = random_below(random, 20) == 0 ? 20 : 10; /* up to 4 MiB, mostly up to 4 KiB */
    return (size_t)8 << random_below(random, limit);
}

/* calloc's zeroes are checked before the shadow fills the block. */
static void *checked_calloc(uint64_t *random, size_t size)
{
    const size_t element = random_below(random, 2) == 0 && size % 8 == 0 && size != 0 ? 8 : 1;
    unsigned char *block = family.calloc(size / element, element);
    CHECK(block != NULL);
    for (size_t i = 0; i < size; i++) {
        CHECK(block[i] == 0);
    }
    return block;
}

static void *allocate_aligned(uint64_t *random, size_t alignment, size_t size)
{
    void *block = NULL;
    switch (random_below(random, 3)) {
    case 0:
        return family.aligned_alloc(alignment, size);
    case 1:
        return family.memalign(alignment, size);
    default:
        CHECK(family.posix_memalign(&block, alignment, size) == 0);
        return block;
    }
}

static void allocate(struct shadow *shadow, uint64_t *random)
{
    const size_t size = random_size(random);
    const uint64_t seed = random_next(random);
    switch (random_below(random, 16)) {
    case 0:
    case 1:
    case 2:
        shadow_adopt(shadow, checked_calloc(random, size), size, 0, seed);
        return;
    case 3:
    case 4: {
        const size_t alignment = random_alignment(random);
        shadow_adopt(shadow, allocate_aligned(random, alignment, size), size, alignment, seed);
        return;
    }
    case 5:
        shadow_adopt(shadow, family.realloc(NULL, size), size, 0, seed);
        return;
    case 6:
        shadow_adopt(shadow, family.reallocarray(NULL, size, 1), size, 0, seed);
        return;
    case 7:
        shadow_adopt(shadow, random_below(random, 2) == 0 ? family.valloc(size) : family.pvalloc(size), size, 4096, seed);
        shadow->free_sized_ok = false;
        return;
    default:
        shadow_adopt(shadow, family.malloc(size), size, 0, seed);
        return;
    }
}

static void reallocate(struct shadow *shadow, uint64_t *random)
{
    const struct shadow old = *shadow;
    const size_t size = random_below(random, 4) == 0 ? old.size + random_below(random, 200) : random_size(random);
    void *block = shadow_release(shadow);
    if (size == 0) {
        CHECK(family.realloc(block, 0) == NULL);
        return;
    }
    unsigned char *moved =
        random_below(random, 4) == 0 ? family.reallocarray(block, size, 1) : family.realloc(block, size);
    CHECK(moved != NULL);
    shadow_verify_prefix(moved, old.size < size ? old.size : size, old.seed);
    shadow_adopt(shadow, moved, size, 0, random_next(random));
}

/* A request that cannot be met leaves the block alone. */
static void reallocate_in_vain(const struct shadow *shadow)
{
    errno = 0;
    CHECK(family.realloc(shadow->block, PTRDIFF_MAX) == NULL);
    CHECK(errno == ENOMEM);
    shadow_verify(shadow);
}

static void release(struct shadow *shadow, uint64_t *random)
{
    const size_t size = shadow->size;
    const size_t alignment = shadow->alignment;
    const bool sized = shadow->free_sized_ok && family.free_sized != NULL;
    void *block = shadow_release(shadow);
    errno = EDOM;
    if (sized && random_below(random, 8) == 0) {
        if (alignment != 0) {
            family.free_aligned_sized(block, alignment, size);
        } else {
            family.free_sized(block, size);
        }
    } else {
        family.free(block);
    }
    CHECK(errno == EDOM);
}

static struct shadow *trade(struct shadow *shadow, uint64_t *random)
{
    const size_t place = random_below(random, EXCHANGE_PLACES);
    struct shadow *got = atomic_exchange_explicit(&exchange[place], shadow, memory_order_acq_rel);
    return got != NULL ? got : &exchange_shadows[place];
}

static void act(struct player *player)
{
    uint64_t *random = &player->random;
    struct shadow **held = &player->held[random_below(random, PLAYER_SHADOWS)];
    const uint64_t choice = random_below(random, 100);
    if (choice < 15) {
        *held = trade(*held, random);
    } else if ((*held)->block == NULL) {
        allocate(*held, random);
    } else if (choice < 35) {
        reallocate(*held, random);
    } else if (choice < 36) {
        reallocate_in_vain(*held);
    } else if (choice < 38) {
        shadow_verify(*held);
    } else {
        release(*held, random);
    }
}

void player_init(struct player *player, uint64_t seed, size_t operations)
{
    player->random = seed;
    player->operations = operations;
    for (size_t i = 0; i < PLAYER_SHADOWS; i++) {
        player->held[i] = &player->own[i];
    }
}

void *player_run(void *argument)
{
    struct player *player = argument;
    for (size_t i = 0; i < player->operations; i++) {
        act(player);
        if (i % 50000 == 49999) {
            family.malloc_trim(0);
        }
    }
    return NULL;
}

static void free_block(struct shadow *shadow)
{
    if (shadow->block != NULL) {
        family.free(shadow_release(shadow));
    }
}

void player_free_all(struct player *player)
{
    for (size_t i = 0; i < PLAYER_SHADOWS; i++) {
        free_block(player->held[i]);
    }
}

void exchange_free_all(void)
{
    for (size_t i = 0; i < EXCHANGE_PLACES; i++) {
        struct shadow *shadow = atomic_load(&exchange[i]);
        if (shadow != NULL) {
            free_block(shadow);
        }
    }
}
