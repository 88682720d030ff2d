#include "config/size_class.h"

#include "base/bits.h"
#include "os/os.h"

uint8_t size_to_class[(SMALL_MAX >> SIZE_TABLE_STEP_SHIFT) + 1];
struct size_class size_classes[SIZE_CLASSES];

enum { BLOCKS_WANTED = 8 };

size_t units_per_page(void)
{
    return max_size(os_page_size() >> UNIT_SHIFT, 1);
}

/* Slabs are single units unless that holds too few blocks, or wastes more than 1/32 at its end. */
static uint32_t units_for(size_t size)
{
    uint32_t least = (uint32_t)units_per_page();
    for (uint32_t units = least; units < SLAB_UNITS_MAX; units += least) {
        size_t bytes = units * UNIT_SIZE;
        if (bytes / size >= BLOCKS_WANTED && bytes % size <= bytes / 32)
            return units;
    }
    return SLAB_UNITS_MAX;
}

static size_t size_after(size_t size)
{
    if (size < 16)
        return 16;
    if (size < 128)
        return size + 16;
    return size + ((size_t)1 << log2_floor(size)) / 4;
}

static void define(unsigned id, size_t size)
{
    uint32_t units = units_for(size);
    size_classes[id] = (struct size_class){
        .size = (uint32_t)size,
        .reciprocal = (uint32_t)divide_up((size_t)1 << 32, size),
        .blocks = (uint32_t)(units * UNIT_SIZE / size),
        .units = units,
    };
}

void size_class_init(void)
{
    size_t step = 0;
    size_t size = 8;
    for (unsigned id = 0; id < SIZE_CLASSES_FIXED; id++, size = size_after(size)) {
        define(id, size);
        for (; step << SIZE_TABLE_STEP_SHIFT <= size; step++)
            store_relaxed(&size_to_class[step], (uint8_t)id);
    }
}

unsigned size_class_aligned(size_t alignment, size_t size)
{
    if (size > SMALL_MAX || alignment > UNIT_SIZE || size_classes[0].size == 0)
        return SIZE_CLASSES;
    unsigned id = size_class_of(max_size(size, alignment));
    while (id < SIZE_CLASSES_FIXED && (size_classes[id].size & (alignment - 1)) != 0)
        id++;
    return id < SIZE_CLASSES_FIXED ? id : SIZE_CLASSES;
}
