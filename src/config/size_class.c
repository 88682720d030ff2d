#include "config/size_class.h"

#include "base/bits.h"
#include "os/os.h"

uint8_t size_to_class[(SMALL_MAX >> SIZE_TABLE_STEP_SHIFT) + 1];
struct size_class size_classes[SIZE_CLASSES];

/* What databases and caches ask for most: a page, and what they note of it. The next class would lose a sixth of each (decision 41). */
enum { PAGE = 4096, PAGE_WITH_HEADER = 4608 };

enum { CLASSES_PER_DOUBLING = 4, FITS_SHIFT = 7 };

/* Of a slab. The hardened library's have a fence behind each, which is a call of the kernel and a mapping. */
enum { BLOCKS_WANTED = 8, BLOCKS_WANTED_OF_PAGES = HARDENED ? BLOCKS_WANTED : 4 };

_Static_assert(1 << FITS_SHIFT == SIZE_CLASS_FITS, "the fixed classes are found by the logarithm of a size");

size_t units_per_page(void)
{
    return max_size(os_page_size() >> UNIT_SHIFT, 1);
}

/* As few units as hold enough blocks, and waste no more than 1/32 at their end. */
static uint32_t units_for(size_t size)
{
    size_t wanted = size <= PAGE ? BLOCKS_WANTED : BLOCKS_WANTED_OF_PAGES;
    uint32_t step = (uint32_t)units_per_page();
    for (uint32_t units = step; units < SLAB_UNITS_MAX; units += step) {
        size_t bytes = units * UNIT_SIZE;
        if (bytes / size >= wanted && bytes % size <= bytes / 32)
            return units;
    }
    return SLAB_UNITS_MAX;
}

static size_t size_after(size_t size)
{
    if (size < SIZE_CLASS_STEP)
        return SIZE_CLASS_STEP;
    if (size < SIZE_CLASS_FITS)
        return size + SIZE_CLASS_STEP;
    if (size == PAGE)
        return PAGE_WITH_HEADER;
    size_t step = ((size_t)1 << log2_floor(size)) / CLASSES_PER_DOUBLING;
    return align_up(size + 1, step);
}

struct size_class size_class_geometry(size_t size)
{
    uint32_t units = units_for(size);
    return (struct size_class){
        .size = (uint32_t)size,
        .reciprocal = (uint32_t)divide_up((size_t)1 << 32, size),
        .blocks = (uint32_t)(units * UNIT_SIZE / size),
        .units = units,
    };
}

void size_class_define(unsigned id, size_t size)
{
    struct size_class class = size_class_geometry(size);
    store_relaxed(&size_classes[id].size, class.size);
    store_relaxed(&size_classes[id].reciprocal, class.reciprocal);
    store_relaxed(&size_classes[id].blocks, class.blocks);
    store_relaxed(&size_classes[id].units, class.units);
}

void size_class_init(void)
{
    size_t step = 0;
    size_t size = 8;
    for (unsigned id = 0; id < SIZE_CLASSES_FIXED; id++, size = size_after(size)) {
        size_class_define(id, size);
        for (; step << SIZE_TABLE_STEP_SHIFT <= size; step++)
            store_relaxed(&size_to_class[step], (uint8_t)id);
    }
}

unsigned size_class_fixed(size_t size)
{
    if (size <= SIZE_CLASS_FITS)
        return size <= 8 ? 0 : (unsigned)divide_up(size, SIZE_CLASS_STEP);
    unsigned power = log2_floor(size - 1);
    size_t step = ((size_t)1 << power) / CLASSES_PER_DOUBLING;
    unsigned beyond = (unsigned)divide_up(size - ((size_t)1 << power), step);
    unsigned id = SIZE_CLASS_FITS / SIZE_CLASS_STEP + (power - FITS_SHIFT) * CLASSES_PER_DOUBLING + beyond;
    return size > PAGE_WITH_HEADER ? id + 1 : id;
}

unsigned size_class_aligned(size_t alignment, size_t size)
{
    if (size > SMALL_MAX || alignment > SLAB_ALIGN_MOST || size_classes[0].size == 0)
        return SIZE_CLASSES;
    /* Four a doubling: the fixed class of a multiple of the alignment is one too. */
    size_t bytes = align_up(max_size(size, 1), alignment);
    if (bytes > SMALL_MAX)
        return SIZE_CLASSES;
    unsigned id = size_class_of(bytes);
    return LIKELY(id < SIZE_CLASSES_FIXED) ? id : size_class_fixed(bytes);
}

bool size_class_may_be_made(size_t size)
{
    return size > SIZE_CLASS_FITS && size < SMALL_MAX && size % SIZE_CLASS_STEP == 0 && size_classes[0].size != 0
           && size_classes[size_class_fixed(size)].size != size;
}

/* The requests that the table serves by one class lie below one another, the largest of them being `size`. */
static void replace(size_t size, unsigned by)
{
    uint8_t *entry = &size_to_class[size >> SIZE_TABLE_STEP_SHIFT];
    uint8_t before = *entry;
    for (; *entry == before; entry--)
        store_release(entry, (uint8_t)by);
}

void size_class_show(unsigned id)
{
    replace(size_classes[id].size, id);
}

void size_class_hide(unsigned id)
{
    size_t size = size_classes[id].size;
    replace(size, size_to_class[(size >> SIZE_TABLE_STEP_SHIFT) + 1]);
}
