/* large/large.h: large blocks that are made, resized and freed, against a model of where they lie and what they hold; the
 * system may refuse to move pages, time passes, and the BigCache keeps its budget. */
#include "large/large.h"

#include <string.h>

#include "base/bits.h"
#include "check.h"
#include "config/policy.h"
#include "fake_os.h"
#include "fuzz.h"
#include "large/bigcache.h"
#include "larges.h"

enum { BLOCKS = 24, ALIGN_SHIFT_MOST = 23, PAGE = 4096, MS_MOST = 5000 };

static struct block {
    char *at; /* NULL: none */
    size_t bytes;
    uint64_t mark; /* its lowest byte is not 0 */
} blocks[BLOCKS];

static uint64_t marks;
static uint64_t now_ms = 1;

/* A word at the start of each 4 KiB, which is its offset and the mark. Below `from` all that fit are there. */
static void write_words(const struct block *block, size_t from)
{
    size_t first = align_up(from - min_size(from, sizeof(uint64_t) - 1), PAGE);
    for (size_t offset = first; offset + sizeof(uint64_t) <= block->bytes; offset += PAGE)
        memcpy(block->at + offset, &(uint64_t){block->mark + offset}, sizeof(uint64_t));
}

static void check_words(const char *at, size_t bytes, uint64_t mark)
{
    for (size_t offset = 0; offset + sizeof(uint64_t) <= bytes; offset += PAGE)
        CHECK(memcmp(at + offset, &(uint64_t){mark + offset}, sizeof(uint64_t)) == 0);
}

static void check_zero(const char *at, size_t bytes)
{
    for (size_t offset = 0; offset < bytes; offset += PAGE)
        CHECK(at[offset] == 0);
    CHECK(at[bytes - 1] == 0);
}

/* No two blocks share a byte that their users may use. */
static void check_apart(const struct block *block)
{
    size_t bytes = large_find(block->at)->bytes;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].at != NULL && &blocks[i] != block)
            CHECK(blocks[i].at + blocks[i].bytes <= block->at || block->at + bytes <= blocks[i].at);
}

static size_t read_bytes(struct input *input)
{
    return SMALL_MAX + 1 + input_below(input, (size_t)1 << (8 + input_below(input, 14)));
}

static void make(struct block *block, struct input *input)
{
    size_t align = (size_t)1 << (input_byte(input) % 4 == 0 ? input_below(input, ALIGN_SHIFT_MOST) : 0);
    bool zero = false;
    block->bytes = read_bytes(input);
    block->mark = ++marks << 32 | 1;
    block->at = large_alloc(block->bytes, align, &zero);
    CHECK(block->at != NULL && (uintptr_t)block->at % max_size(align, UNIT_SIZE) == 0);
    struct large *record = large_find(block->at);
    CHECK(record != NULL && record->bytes >= block->bytes && record->bytes - block->bytes < PAGE);
    check_apart(block);
    if (zero)
        check_zero(block->at, record->bytes);
    write_words(block, 0);
}

static void resize(struct block *block, struct input *input)
{
    size_t bytes = read_bytes(input);
    size_t kept = min_size(bytes, block->bytes);
    struct large *record = large_find(block->at);
    CHECK(record != NULL);
    uint8_t refused = input_byte(input);
    if (refused % 4 == 0)
        fake_os_refuse(FAKE_MOVE | FAKE_REFILL_HOLE | FAKE_RENEW, 1 + refused / 4 % 2, 1);
    char *at = large_resize(record, bytes);
    fake_os_obey();
    if (at == NULL) {
        CHECK(large_find(block->at) == record);
        check_words(block->at, block->bytes, block->mark);
        return;
    }
    CHECK(large_find(at) == record && record->bytes >= bytes);
    CHECK(at == block->at || large_find(block->at) == NULL);
    check_words(at, kept, block->mark);
    block->at = at;
    block->bytes = bytes;
    check_apart(block);
    write_words(block, kept);
}

static void give(struct block *block)
{
    struct large_freed freed;
    struct large *record = large_find(block->at);
    CHECK(record != NULL);
    size_t usable = record->bytes;
    check_words(block->at, block->bytes, block->mark);
    CHECK(large_free(block->at, NULL, &freed) == LARGE_FINE && freed.bytes == usable);
    CHECK(large_find(block->at) == NULL);
    block->at = NULL;
}

/* Freed twice, or not a block's first unit. */
static void give_wrongly(const struct block *block, struct input *input)
{
    struct large_freed freed;
    size_t offset = input_below(input, block->bytes) & ~(size_t)7;
    if (offset % UNIT_SIZE != 0 && offset < UNIT_SIZE)
        CHECK(large_free(block->at + offset, NULL, &freed) == LARGE_NOT_A_BLOCK);
    CHECK(offset == 0 || large_find(block->at + offset) == NULL);
}

static void wait(struct input *input)
{
    static const size_t budgets[] = {0, 4 * MIB, 64 * MIB};
    now_ms += input_below(input, MS_MOST);
    fake_clock_set(now_ms);
    policy.bigcache_bytes = budgets[input_below(input, sizeof budgets / sizeof budgets[0])];
    large_evict_old(now_ms);
    CHECK(bigcache_bytes() <= policy.bigcache_bytes);
}

static void check_sums(void)
{
    struct large_stats stats;
    size_t live = 0;
    size_t bytes = 0;
    for (int i = 0; i < BLOCKS; i++) {
        live += blocks[i].at != NULL;
        bytes += blocks[i].at != NULL ? large_find(blocks[i].at)->bytes : 0;
    }
    large_stats(&stats);
    CHECK(stats.live_blocks == live && stats.live_bytes == bytes);
    CHECK(span_used_bytes() >= bytes + bigcache_bytes());
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    large_init();
    fake_clock_set(now_ms);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    while (input_has_more(&input)) {
        struct block *block = &blocks[input_below(&input, BLOCKS)];
        uint8_t kind = input_byte(&input) % 8;
        if (kind == 0)
            wait(&input);
        else if (block->at == NULL)
            make(block, &input);
        else if (kind < 4)
            resize(block, &input);
        else if (kind < 5)
            give_wrongly(block, &input);
        else
            give(block);
        check_sums();
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].at != NULL)
            give(&blocks[i]);
    large_evict_before(UINT64_MAX); /* so that the next finds what this one did */
    CHECK(bigcache_bytes() == 0 && span_used_bytes() == 0);
    (void)span_purge_all();
    return 0;
}
