/* base/shard.h: threads are spread, however far apart libc puts their stacks. */
#include "unit.h"

#include "base/shard.h"

enum { PAGE = 4096, WIDE = 65536, STACKS = 64 };

static void check_spread(uintptr_t distance, unsigned least)
{
    for (unsigned stack = 0; stack < STACKS; stack++) {
        uintptr_t first = (uintptr_t)0x7f0000000000 + stack * (uintptr_t)(12345 * PAGE);
        unsigned seen = 0;
        for (unsigned i = 0; i < SHARDS; i++)
            seen |= 1u << shard_spread(first + i * distance, SHARDS);
        CHECK((unsigned)__builtin_popcount(seen) >= least);
    }
}

static void neighbours_differ(void)
{
    static const uintptr_t stacks[] = {(uintptr_t)8 << 20, (uintptr_t)1 << 20, (uintptr_t)256 << 10};
    for (unsigned i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        check_spread(stacks[i] + PAGE, SHARDS / 2);
        check_spread(stacks[i] + WIDE, SHARDS / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT_TEST(neighbours_differ)};
    return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}
