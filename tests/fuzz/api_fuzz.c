/* include/hakmem.h: one thread, blocks of all kinds, and what is said of addresses in them; time passes as the input says. */
#include <stdio.h>
#include <string.h>

#include "blocks.h"
#include "check.h"
#include "check/nearest.h"
#include "fake_os.h"
#include "hakmem.h"

enum { TEXT_MOST = 200, MS_MOST = 5000 };

static uint64_t now_ms = 1;

/* What a report would say of an address in a block. */
static void describe(const struct shadow *shadow, size_t offset)
{
    char wanted[TEXT_MOST];
    char text[TEXT_MOST];
    size_t length = nearest_describe((uintptr_t)shadow->block + offset, text, sizeof text);
    snprintf(wanted, sizeof wanted, "%zu bytes into a live block of %zu B at %p", offset, shadow->usable,
             (void *)shadow->block);
    CHECK(length == strlen(text) && strcmp(text, wanted) == 0);
}

static void describe_or_wait(struct blocks *blocks, struct shadow **held, struct input *input)
{
    char text[TEXT_MOST];
    (void)blocks;
    switch (input_below(input, 3)) {
    case 0:
        if ((*held)->block != NULL && (*held)->usable > 0)
            describe(*held, input_below(input, (*held)->usable));
        break;
    case 1: /* near a block, or anywhere */
        (void)nearest_describe((uintptr_t)(*held)->block + input_number(input, 8), text, sizeof text);
        CHECK(strlen(text) < sizeof text);
        break;
    default:
        now_ms += input_below(input, MS_MOST);
        fake_clock_set(now_ms);
    }
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    blocks_start();
    fake_clock_set(now_ms);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    blocks_play_alone(data, size, describe_or_wait);
    (void)hak_purge(HAK_PURGE_CACHED); /* so that the next finds what this one did */
    return 0;
}
