/* config/size_class.h: the table, the geometry of slabs, alignment. */
#include "unit.h"

#include "base/bits.h"
#include "config/size_class.h"

static void every_size_gets_the_smallest_class(void)
{
    size_class_init();
    for (size_t size = 0; size <= SMALL_MAX; size++) {
        unsigned class = size_class_of(size);
        CHECK(class < SIZE_CLASSES_FIXED);
        CHECK(size_classes[class].size >= size);
        CHECK(class == 0 || size_classes[class - 1].size < size);
    }
    CHECK(size_class_of(SMALL_MAX) == SIZE_CLASSES_FIXED - 1);
    CHECK(size_classes[SIZE_CLASSES_FIXED - 1].size == SMALL_MAX);
}

static void sizes_are_as_documented(void)
{
    size_class_init();
    CHECK(size_classes[0].size == 8);
    for (unsigned class = 1; class < SIZE_CLASSES_FIXED; class++)
        CHECK(size_classes[class].size % 16 == 0);
    for (unsigned class = 1; size_classes[class].size <= 128; class++)
        CHECK(size_classes[class].size == 16 * class);
    for (size_t low = 128; low < SMALL_MAX; low *= 2)
        for (size_t step = 1; step <= 4; step++)
            CHECK(size_classes[size_class_of(low + step * low / 4)].size == low + step * low / 4);
    for (unsigned class = SIZE_CLASSES_FIXED; class < SIZE_CLASSES; class++)
        CHECK(size_classes[class].size == 0);
}

static void slabs_hold_their_blocks(void)
{
    size_class_init();
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        const struct size_class *c = &size_classes[class];
        size_t bytes = c->units * UNIT_SIZE;
        CHECK(c->units >= 1 && c->units <= SLAB_UNITS_MAX);
        CHECK(c->blocks == bytes / c->size);
        CHECK(c->blocks >= 4);
        CHECK(c->units == SLAB_UNITS_MAX
              || (c->blocks >= (c->size <= 4096 ? 8 : 4) && bytes - c->blocks * c->size <= bytes / 32));
    }
}

static void reciprocal_is_exact(void)
{
    size_class_init();
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        const struct size_class *c = &size_classes[class];
        for (size_t offset = 0; offset < c->units * UNIT_SIZE; offset++) {
            size_t index = offset * c->reciprocal >> 32;
            CHECK(index == offset / c->size);
        }
    }
}

/* Every class from the first, not only from the one that holds the size. */
static unsigned smallest_aligned(size_t alignment, size_t size)
{
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++)
        if (size_classes[class].size >= size && size_classes[class].size % alignment == 0)
            return class;
    return SIZE_CLASSES;
}

static void alignment_finds_the_smallest_class(void)
{
    size_class_init();
    for (size_t alignment = 1; alignment <= SLAB_ALIGN_MOST; alignment *= 2)
        for (size_t size = 0; size <= SMALL_MAX; size += size < 2048 ? 1 : 31)
            CHECK(size_class_aligned(alignment, size) == smallest_aligned(alignment, size));
    CHECK(size_class_aligned(8, SMALL_MAX + 1) == SIZE_CLASSES);
    CHECK(size_class_aligned(SLAB_ALIGN_MOST * 2, 1) == SIZE_CLASSES); /* no slab starts there */
    CHECK(size_class_aligned((size_t)1 << 63, 1) == SIZE_CLASSES);
    CHECK(size_class_aligned(16, SIZE_MAX) == SIZE_CLASSES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(every_size_gets_the_smallest_class), UNIT_TEST(sizes_are_as_documented),
        UNIT_TEST(slabs_hold_their_blocks),            UNIT_TEST(reciprocal_is_exact),
        UNIT_TEST(alignment_finds_the_smallest_class),
    };
    return cmocka_run_group_tests_name("size_class", tests, NULL, NULL);
}
