/* check/check.h: every block is checked, and each byte that is written where it must not be is found. */
#include <string.h>

#include "blocks.h"
#include "check.h"
#include "check/check.h"
#include "check/run.h"
#include "check/zones.h"
#include "config/policy.h"
#include "hakmem.h"

/* Bytes: the least that lies on either side of a block, and of blocks that stay open after free. */
enum { ZONE_LEAST = 16, OPEN_MOST = 32768 };

/* Writes a byte into a zone, and takes it back. */
static void stray(const struct checked *block, char *at)
{
    char before = *at;
    CHECK(zones_changed(block) == NULL);
    *at = (char)~before;
    CHECK(zones_changed(block) == at);
    *at = before;
}

/* Of large blocks the pages are closed. */
static void free_and_write(struct shadow *shadow, const struct checked *block, struct input *input)
{
    bool is_open = shadow->usable > 0 && shadow->usable <= OPEN_MOST;
    char *at = (char *)shadow->block + (is_open ? input_below(input, shadow->usable) : 0);
    blocks_free(shadow);
    CHECK(block->state == CHECKED_FREED);
    if (!is_open)
        return;
    CHECK(zones_changed_after_free(block) == NULL);
    *at ^= 1;
    CHECK(zones_changed_after_free(block) == at);
    *at ^= 1;
}

static void misuse(struct blocks *blocks, struct shadow **held, struct input *input)
{
    struct shadow *shadow = *held;
    const struct checked *block = run_find(shadow->block);
    (void)blocks;
    CHECK((block != NULL) == (shadow->block != NULL));
    if (block == NULL) {
        if (input_byte(input) % 32 == 0) /* all in quarantine are looked at, which takes long */
            CHECK(hak_check() >= run_counts().blocks);
        return;
    }
    char *start = (char *)shadow->block;
    CHECK(block->state == CHECKED_LIVE && checked_start(block) == start && block->size == shadow->usable);
    switch (input_below(input, 4)) {
    case 0:
        stray(block, start - 1 - input_below(input, ZONE_LEAST));
        break;
    case 1:
        stray(block, start + shadow->usable + input_below(input, ZONE_LEAST));
        break;
    case 2:
        free_and_write(shadow, block, input);
        break;
    default:
        CHECK(run_find(start + input_below(input, shadow->usable + 1)) == block);
    }
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    blocks_start();
    policy.checks = CHECK_ALL & ~(unsigned)CHECK_LEAKS;
    check_start();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    blocks_play_alone(data, size, misuse);
    CHECK(run_counts().blocks == 0 && run_counts().bytes == 0);
    return 0;
}
