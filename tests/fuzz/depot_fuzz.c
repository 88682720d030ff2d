/* observe/depot.h: stacks, many of them alike, under their numbers; those of an input stay, and are found by the next. */
#include "observe/depot.h"

#include <string.h>

#include "check.h"
#include "fuzz.h"

enum { STACKS = 128, CALLS_MOST = 40 };

static struct {
    uintptr_t calls[CALLS_MOST];
    size_t count;
    uint32_t number;
} known[STACKS];

static bool is_known_as(size_t index, const uintptr_t *calls, size_t count)
{
    return known[index].count == count && memcmp(known[index].calls, calls, count * sizeof *calls) == 0;
}

/* Few values, so that stacks differ in little. */
static size_t read_calls(struct input *input, uintptr_t *calls)
{
    size_t count = input_below(input, CALLS_MOST + 1);
    for (size_t i = 0; i < count; i++) {
        uint8_t kind = i % 4 == 0 ? input_byte(input) : 0;
        calls[i] = kind < 128 ? kind : (uintptr_t)input_number(input, 8);
    }
    return count;
}

/* The same number exactly for the same stack; 0 once there is no room. */
static void check_number(size_t stacks, const uintptr_t *calls, size_t count, uint32_t number)
{
    for (size_t i = 0; i < stacks; i++)
        CHECK(number == DEPOT_NONE || (known[i].number == number) == is_known_as(i, calls, count));
}

static void check_content(size_t index)
{
    size_t count;
    const uintptr_t *calls = depot_get(known[index].number, &count);
    if (known[index].number == DEPOT_NONE)
        CHECK(calls == NULL && count == 0);
    else
        CHECK(is_known_as(index, calls, count));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    size_t stacks = 0;
    while (input_has_more(&input) && stacks < STACKS) {
        known[stacks].count = read_calls(&input, known[stacks].calls);
        known[stacks].number = depot_put(known[stacks].calls, known[stacks].count);
        CHECK(known[stacks].count > 0 || known[stacks].number == DEPOT_NONE);
        check_number(stacks, known[stacks].calls, known[stacks].count, known[stacks].number);
        stacks++;
    }
    for (size_t i = 0; i < stacks; i++)
        check_content(i);
    return 0;
}
