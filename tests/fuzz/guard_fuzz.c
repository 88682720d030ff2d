/* check/guard.h: nearly every small block is guarded; where it lies, and what is known of it. */
#include "base/bits.h"
#include "blocks.h"
#include "check.h"
#include "check/guard.h"
#include "config/policy.h"
#include "fake_os.h"
#include "os/os.h"

enum { SLOTS = 16 };

static size_t page;

/* A guarded block lies in a page of its own, and ends or begins with it. */
static void look(struct blocks *blocks, struct shadow **held, struct input *input)
{
    const struct shadow *shadow = *held;
    struct guard_place place;
    (void)blocks;
    uintptr_t start = (uintptr_t)shadow->block;
    if (guard_find(start + input_number(input, 8), &place) && place.inside)
        CHECK(place.slot != NULL);
    if (start == 0 || !guard_find(start, &place))
        return;
    CHECK(place.inside && place.slot->block == (char *)shadow->block && place.slot->state == GUARD_LIVE);
    size_t end = start % page + shadow->usable;
    CHECK(place.slot->size == shadow->usable && end <= page);
    CHECK(start % page == 0 || page - end < max_size(shadow->alignment, 16));
    CHECK(guard_find(start - start % page - 1, &place) && !place.inside);
    CHECK(guard_find(start - start % page + page, &place) && !place.inside);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    page = os_page_size();
    blocks_start();
    fake_os_refuse(FAKE_RANDOM, 1, FAKE_EVERY); /* at which end of its page a block lies */
    policy.guard_bytes = 1;
    policy.guard_slots = SLOTS;
    guard_start();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    blocks_play_alone(data, size, look);
    return 0;
}
