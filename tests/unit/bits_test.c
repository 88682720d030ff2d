/* base/bits.h against the plainest code that computes the same. */
#include "unit.h"

#include "base/bits.h"
#include "random.h"

static const bits128 all_ones = ~(bits128)0;

static unsigned ones_one_by_one(bits128 n)
{
    unsigned ones = 0;
    for (; n != 0; n >>= 1)
        ones += (unsigned)(n & 1);
    return ones;
}

static void counts_ones(void)
{
    uint64_t seed = 1;
    CHECK(count_ones128(0) == 0);
    CHECK(count_ones128(all_ones) == 128);
    for (unsigned bit = 0; bit < 128; bit++) {
        CHECK(count_ones128((bits128)1 << bit) == 1);
        CHECK(count_ones128(~((bits128)1 << bit)) == 127);
    }
    for (int i = 0; i < 100000; i++) {
        bits128 n = (bits128)random_next(&seed) << 64 | random_next(&seed);
        CHECK(count_ones128(n) == ones_one_by_one(n));
    }
}

static void finds_the_lowest_one(void)
{
    for (unsigned bit = 0; bit < 128; bit++) {
        CHECK(lowest_one128((bits128)1 << bit) == bit);
        CHECK(lowest_one128(all_ones << bit) == bit);
    }
}

static void finds_the_lowest_run(void)
{
    for (unsigned bit = 0; bit < 128; bit++) {
        for (unsigned length = 1; length <= 128 - bit; length++) {
            bits128 run = mask128(length) << bit;
            bits128 others = bit + length < 127 ? all_ones << (bit + length + 1) : 0;
            unsigned first;
            CHECK(lowest_run128(run, &first) == length && first == bit);
            CHECK(lowest_run128(run | others, &first) == length && first == bit);
        }
    }
}

static void rotates(void)
{
    uint64_t n = 0x0123456789abcdef;
    uint64_t turned = n;
    for (unsigned by = 1; by < 64; by++) {
        turned = turned >> 1 | (turned & 1) << 63;
        CHECK(rotate_right(n, by) == turned);
    }
}

static void aligns(void)
{
    for (size_t to = 1; to <= MIB; to *= 2) {
        CHECK(align_up(0, to) == 0);
        CHECK(align_up(1, to) == to);
        CHECK(align_up(to, to) == to);
        CHECK(align_up(to + 1, to) == (to == 1 ? 2 : 2 * to));
        CHECK(align_down(3 * to, to) == 3 * to);
        CHECK(align_down(4 * to - 1, to) == (to == 1 ? 3 : 3 * to));
    }
}

static void divides_up(void)
{
    CHECK(divide_up(0, 7) == 0);
    CHECK(divide_up(1, 7) == 1);
    CHECK(divide_up(7, 7) == 1);
    CHECK(divide_up(8, 7) == 2);
    CHECK(divide_up(SIZE_MAX, 2) == SIZE_MAX / 2 + 1);
}

static void knows_powers_of_two(void)
{
    CHECK(!is_power_of_two(0));
    for (unsigned bit = 0; bit < 64; bit++) {
        size_t power = (size_t)1 << bit;
        CHECK(is_power_of_two(power));
        CHECK(log2_floor(power) == bit);
        if (bit > 1) {
            CHECK(!is_power_of_two(power - 1));
            CHECK(!is_power_of_two(power + 1));
            CHECK(log2_floor(power - 1) == bit - 1);
        }
    }
}

static void makes_masks(void)
{
    CHECK(mask32(0) == 0);
    CHECK(mask32(1) == 1);
    CHECK(mask32(31) == 0x7fffffff);
    CHECK(mask32(32) == 0xffffffff);
    CHECK(mask128(0) == 0);
    CHECK(mask128(1) == 1);
    CHECK(mask128(127) == all_ones >> 1);
    CHECK(mask128(128) == all_ones);
}

static bool is_run(bits128 n, unsigned at, unsigned count)
{
    for (unsigned i = at; i < at + count; i++)
        if (i >= 128 || (n >> i & 1) == 0)
            return false;
    return true;
}

static void finds_where_runs_begin(void)
{
    const bits128 sets[] = {1, all_ones, all_ones << 100, all_ones >> 3, (bits128)0x77f7 << 60 | 0xff03};
    for (size_t set = 0; set < sizeof sets / sizeof sets[0]; set++)
        for (unsigned count = 1; count <= 128; count++)
            for (unsigned i = 0; i < 128; i++)
                CHECK((run_starts128(sets[set], count) >> i & 1) == is_run(sets[set], i, count));
}

static void knows_multiples(void)
{
    for (unsigned of = 1; of <= 128; of *= 2)
        for (unsigned i = 0; i < 128; i++)
            CHECK((multiples128(of) >> i & 1) == (i % of == 0));
}

static void clamps(void)
{
    CHECK(clamp_size(1, 2, 5) == 2);
    CHECK(clamp_size(3, 2, 5) == 3);
    CHECK(clamp_size(9, 2, 5) == 5);
    CHECK(min_size(1, SIZE_MAX) == 1);
    CHECK(max_size(1, SIZE_MAX) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(counts_ones), UNIT_TEST(finds_the_lowest_one), UNIT_TEST(finds_the_lowest_run), UNIT_TEST(rotates), UNIT_TEST(aligns), UNIT_TEST(divides_up),
        UNIT_TEST(knows_powers_of_two), UNIT_TEST(makes_masks), UNIT_TEST(finds_where_runs_begin), UNIT_TEST(knows_multiples), UNIT_TEST(clamps),
    };
    return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
