/* config/size_class.h: every size and alignment has the least class that serves it, by the words of the header. */
#include "config/size_class.h"

#include "check.h"
#include "fuzz.h"

/* The size of the next class: 8, then steps of 16 to 128, then four per doubling, and 4608. */
static size_t after(size_t size)
{
    size_t power = 128;
    if (size < 128)
        return size < 16 ? 16 : size + 16;
    if (size == 4096 || size == 4608)
        return size + 512;
    while (power * 2 <= size)
        power *= 2;
    return size + power / 4;
}

/* SIZE_CLASSES: none. */
static unsigned least_class(size_t size, size_t alignment)
{
    unsigned id = 0;
    for (size_t least = 8; least <= SMALL_MAX; least = after(least), id++)
        if (least >= size && least % alignment == 0)
            return id;
    return SIZE_CLASSES;
}

static void check_slab(unsigned id, size_t offset)
{
    const struct size_class *class = &size_classes[id];
    size_t bytes = class->units * UNIT_SIZE;
    offset %= bytes;
    CHECK(offset * class->reciprocal >> 32 == offset / class->size);
    CHECK(class->blocks == bytes / class->size);
    CHECK(class->units >= 1 && class->units <= SLAB_UNITS_MAX && class->units % units_per_page() == 0);
    CHECK(class->units == SLAB_UNITS_MAX
          || (class->blocks >= (class->size <= 4096 ? 8 : 4) && bytes % class->size <= bytes / 32));
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    size_class_init();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    size_t bytes = input_below(&input, SMALL_MAX + 1);
    size_t alignment = (size_t)1 << input_below(&input, 20);
    size_t offset = input_number(&input, 3);
    unsigned id = size_class_of(bytes);
    CHECK(id == least_class(bytes, 1) && size_classes[id].size >= bytes);
    check_slab(id, offset);
    unsigned aligned = size_class_aligned(alignment, bytes);
    CHECK(aligned == (alignment <= SLAB_ALIGN_MOST ? least_class(bytes, alignment) : (unsigned)SIZE_CLASSES));
    CHECK(size_class_aligned(alignment, SMALL_MAX + 1 + offset) == SIZE_CLASSES);
    return 0;
}
