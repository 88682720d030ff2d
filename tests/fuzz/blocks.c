#include "blocks.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "config/policy.h"
#include "family.h"
#include "hakmem.h"
#include "heap/events.h"
#include "model/interval_set.h"

enum { LARGE_MOST = 1 << 20, SMALL_AND_MORE = 40000, ALIGNMENTS = 20, PREWARM_MOST = 64, HEARTBEAT_BYTES = 1 << 16 };

/* Everything happens in the threads of the input, and at the time that it says. */
void blocks_start(void)
{
    interval_set_init();
    heap_events = (struct heap_events){0};
    policy.purger = false;
    policy.heartbeat_bytes = HEARTBEAT_BYTES;
    policy.soft_limit = policy.hard_limit = SIZE_MAX;
}

void blocks_init(struct blocks *blocks, uint64_t seed)
{
    memset(blocks, 0, sizeof *blocks);
    blocks->seed = seed << 48;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks->held[i] = &blocks->own[i];
}

static uint64_t next_seed(struct blocks *blocks)
{
    return blocks->seed += (uint64_t)1 << 24;
}

/* Mostly small; around the steps of the size classes, and around that to large blocks. */
static size_t read_size(struct input *input)
{
    uint8_t kind = input_byte(input);
    switch (kind % 8) {
    case 4:
    case 5:
        return input_below(input, SMALL_AND_MORE);
    case 6:
        return ((size_t)1 << kind / 8 % 21) + input_below(input, 5) - (kind / 8 % 21 > 0 ? 2 : 0);
    case 7:
        return input_below(input, LARGE_MOST);
    default:
        return input_byte(input);
    }
}

static size_t read_alignment(struct input *input)
{
    return (size_t)8 << input_below(input, ALIGNMENTS);
}

/* A new block, or none where that may be. */
static void adopt(struct blocks *blocks, struct shadow *shadow, void *block, size_t size, size_t alignment)
{
    if (block != NULL)
        shadow_adopt(shadow, block, size, alignment, next_seed(blocks));
    else
        CHECK(blocks->may_fail && errno == ENOMEM);
}

static void allocate(struct blocks *blocks, struct shadow *shadow, struct input *input)
{
    size_t size = read_size(input);
    adopt(blocks, shadow, family.malloc(size), size, 0);
}

static void allocate_zeroed(struct blocks *blocks, struct shadow *shadow, struct input *input)
{
    size_t size = read_size(input);
    size_t element = 1 + input_below(input, 24);
    unsigned char *block = family.calloc(size / element, element);
    size -= size % element;
    if (block != NULL && size > 0)
        CHECK(block[0] == 0 && memcmp(block, block + 1, size - 1) == 0);
    adopt(blocks, shadow, block, size, 0);
}

static void allocate_aligned(struct blocks *blocks, struct shadow *shadow, struct input *input)
{
    size_t alignment = read_alignment(input);
    size_t size = read_size(input);
    void *block = NULL;
    int error;
    switch (input_below(input, 4)) {
    case 0:
        block = family.aligned_alloc(alignment, size);
        break;
    case 1: /* rounded up to a power of two */
        block = family.memalign(alignment - alignment / 4, size);
        break;
    case 2:
        error = family.posix_memalign(&block, alignment, size);
        CHECK((error == 0) == (block != NULL) && (error == 0 || error == ENOMEM));
        errno = error;
        break;
    default:
        alignment = 4096;
        block = size % 2 == 0 ? family.valloc(size) : family.pvalloc(size);
    }
    adopt(blocks, shadow, block, size, alignment);
    if (shadow->block != NULL)
        shadow->free_sized_ok = alignment != 4096;
}

static void reallocate(struct blocks *blocks, struct shadow *shadow, size_t size, bool as_array)
{
    struct shadow old = *shadow;
    void *block = shadow_release(shadow);
    void *moved = as_array ? family.reallocarray(block, size, 1) : family.realloc(block, size);
    if (size == 0) {
        CHECK(moved == NULL);
    } else if (moved != NULL) {
        shadow_verify_prefix(moved, old.size < size ? old.size : size, old.seed);
        shadow_adopt(shadow, moved, size, 0, next_seed(blocks));
    } else {
        CHECK(blocks->may_fail && errno == ENOMEM);
        shadow_verify_prefix(old.block, old.usable, old.seed);
        shadow_adopt(shadow, old.block, old.size, old.alignment, old.seed);
        shadow->free_sized_ok = old.free_sized_ok;
    }
}

/* Requests that no memory can serve, or that make no sense. */
static void ask_in_vain(struct blocks *blocks, struct shadow **held, struct input *input)
{
    static char untouched;
    void *out = &untouched;
    size_t beyond = (size_t)PTRDIFF_MAX + 1 + input_number(input, 4);
    struct shadow *shadow = *held;
    (void)blocks;
    errno = 0;
    switch (input_below(input, 6)) {
    case 0:
        CHECK(family.malloc(beyond) == NULL && errno == ENOMEM);
        break;
    case 1:
        CHECK(family.calloc(beyond, 2) == NULL && errno == ENOMEM);
        break;
    case 2:
        CHECK(family.realloc(shadow->block, beyond) == NULL && errno == ENOMEM);
        break;
    case 3:
        CHECK(family.reallocarray(shadow->block, beyond, 3) == NULL && errno == ENOMEM);
        break;
    case 4:
        CHECK(family.aligned_alloc(beyond | 1, 8) == NULL && errno == EINVAL);
        break;
    default:
        CHECK(family.posix_memalign(&out, beyond | 4, 8) == EINVAL && out == &untouched && errno == 0);
    }
    if (shadow->block != NULL)
        shadow_verify(shadow);
}

void blocks_free(struct shadow *shadow)
{
    if (shadow->block != NULL) {
        errno = EDOM;
        family.free(shadow_release(shadow));
        CHECK(errno == EDOM);
    }
}

static void free_sized(struct shadow *shadow)
{
    struct shadow old = *shadow;
    void *block = shadow_release(shadow);
    if (!old.free_sized_ok)
        family.free(block);
    else if (old.alignment != 0)
        family.free_aligned_sized(block, old.alignment, old.size);
    else
        family.free_sized(block, old.size);
}

static void give_back(struct blocks *blocks, struct shadow **held, struct input *input)
{
    (void)blocks;
    (void)held;
    switch (input_below(input, 4)) {
    case 0:
        (void)hak_malloc_trim(0);
        break;
    case 1:
        (void)hak_purge(HAK_PURGE_FREE);
        break;
    case 2:
        (void)hak_purge(HAK_PURGE_CACHED);
        break;
    default:
        (void)hak_prewarm(input_below(input, SMALL_AND_MORE), input_below(input, PREWARM_MOST));
    }
}

/* With a block there: something becomes of it. Without: it is made. */
static void change(struct blocks *blocks, struct shadow **held, struct input *input)
{
    struct shadow *shadow = *held;
    unsigned kind = input_byte(input) % 8;
    if (shadow->block == NULL) {
        if (kind < 5)
            allocate(blocks, shadow, input);
        else if (kind < 6)
            allocate_zeroed(blocks, shadow, input);
        else if (kind < 7)
            allocate_aligned(blocks, shadow, input);
        else
            adopt(blocks, shadow, family.realloc(NULL, 24), 24, 0);
    } else if (kind < 4) {
        blocks_free(shadow);
    } else if (kind < 5) {
        free_sized(shadow);
    } else if (kind < 6) {
        reallocate(blocks, shadow, shadow->size + input_below(input, 200), kind % 2 == 0);
    } else {
        reallocate(blocks, shadow, read_size(input), kind % 2 == 0);
    }
}

void blocks_play(struct blocks *blocks, struct input *input)
{
    enum { ELSE = 32 };
    while (input_has_more(input)) {
        uint8_t choice = input_byte(input);
        struct shadow **held = &blocks->held[input_byte(input) % BLOCKS];
        if (choice % ELSE == 1)
            ask_in_vain(blocks, held, input);
        else if (choice % ELSE == 2)
            give_back(blocks, held, input);
        else if (choice % ELSE < 8 && blocks->more != NULL)
            blocks->more(blocks, held, input);
        else
            change(blocks, held, input);
    }
}

void blocks_free_all(struct blocks *blocks)
{
    for (size_t i = 0; i < BLOCKS; i++)
        blocks_free(blocks->held[i]);
}

void blocks_play_alone(const uint8_t *data, size_t size, blocks_operation *more)
{
    static struct blocks blocks;
    struct input input = {data, data + size};
    blocks_init(&blocks, 1);
    blocks.more = more;
    blocks_play(&blocks, &input);
    blocks_free_all(&blocks);
}
