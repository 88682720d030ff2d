/*
 * Size classes. The fixed ones are 8, then steps of 16 to 128, then four per doubling to 32 KiB, and one for a page of 4 KiB with
 * a header (4608): ids 0 to SIZE_CLASSES_FIXED - 1, in the order of their sizes. The other ids are for classes made while the
 * program runs, between two fixed ones, in any order; heap/classes.h says when one may be opened, closed and made another.
 *
 * Class sizes from 16 up are multiples of 16, and slabs start on a unit, so every block of 16 bytes and
 * more is aligned to 16.
 */
#ifndef HAK_CONFIG_SIZE_CLASS_H
#define HAK_CONFIG_SIZE_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"

#define SMALL_MAX ((size_t)32768) /* largest request served by a class, bytes */

/* Sizes of large blocks, by doublings: bin 0 up to 64 KiB, 1 up to 128 KiB, and so on; the last is of all above 1 GiB. */
enum { SIZE_BINS = 16 };

ALWAYS_INLINE unsigned size_bin(size_t bytes)
{
    return bytes <= 64 * KIB ? 0 : (unsigned)min_size(log2_floor(bytes - 1) - 15, SIZE_BINS - 1);
}

enum {
    UNIT_SHIFT = HARDENED ? 14 : 13,      /* 8 KiB, or 16: what slabs and large blocks are made of */
    SIZE_CLASS_BITS = 6,                  /* a tag is heap | class: heaps are aligned to 1 << 6 and more */
    SIZE_CLASSES = 1 << SIZE_CLASS_BITS,  /* ids */
    SIZE_CLASSES_FIXED = 42,
    SIZE_CLASS_STEP = 16,                 /* all sizes but the first are multiples of it */
    SIZE_CLASS_FITS = 128,                /* up to here every multiple has a fixed class */
    SLAB_UNITS_MAX = (128 << 10) >> UNIT_SHIFT,
    SIZE_TABLE_STEP_SHIFT = 3,            /* the table has one byte per 8 bytes of size */
};

#define UNIT_SIZE ((size_t)1 << UNIT_SHIFT)

/* Blocks of a class that is a multiple of it are aligned to it, so their slabs are. */
#define SLAB_ALIGN_MOST ((size_t)16 << 10)

/* Of a class made at run time, it is what it was as long as there is a slab of it: who has a block, or a slab, reads plainly.
 * Others use size_class_bytes, and may see what it was or will be. */
struct size_class {
    uint32_t size;       /* bytes; also the stride of blocks in a slab */
    uint32_t reciprocal; /* ceil(2^32 / size): block index = offset * reciprocal >> 32 */
    uint32_t blocks;     /* in a slab */
    uint32_t units;      /* of a slab, 1 to SLAB_UNITS_MAX */
};

/* Where pages are larger than units, every run of units covers whole pages: it is a multiple of so many. */
size_t units_per_page(void);

/* Class of a request of n bytes: size_to_class[(n + 7) >> 3], n <= SMALL_MAX. All zero until
 * size_class_init: a thread that comes earlier has no heap, and goes through the door. */
extern HIDDEN uint8_t size_to_class[(SMALL_MAX >> SIZE_TABLE_STEP_SHIFT) + 1];
extern HIDDEN struct size_class size_classes[SIZE_CLASSES];

ALWAYS_INLINE unsigned size_class_of(size_t size)
{
    return load_relaxed(&size_to_class[(size + 7) >> SIZE_TABLE_STEP_SHIFT]);
}

/* Bytes of its blocks. */
ALWAYS_INLINE uint32_t size_class_bytes(unsigned id)
{
    return load_relaxed(&size_classes[id].size);
}

/* What its slabs are aligned to, in units. */
ALWAYS_INLINE unsigned size_class_slab_align(unsigned id)
{
    size_t size = size_classes[id].size;
    return (unsigned)max_size(min_size(size & (0 - size), SLAB_ALIGN_MOST) >> UNIT_SHIFT, 1);
}

/* Fills both tables. Called once, under the start-up lock. */
void size_class_init(void);

/* The fixed class of a request of `size` bytes, at most SMALL_MAX: for who keeps blocks by class apart from the heaps. */
unsigned size_class_fixed(size_t size);

/* What a class of this size is, or would be. */
struct size_class size_class_geometry(size_t size);

/* The smallest fixed class whose blocks are all aligned to `alignment` (a power of two) and hold `size` bytes; SIZE_CLASSES if
 * there is none: no alignment beyond SLAB_ALIGN_MOST is served. None before size_class_init. A request of that
 * class's size is served by that class: those made at run time end below. */
unsigned size_class_aligned(size_t alignment, size_t size);

/* Could there be a class of this size, made at run time? None before size_class_init. */
bool size_class_may_be_made(size_t size);

/* Of ids from SIZE_CLASSES_FIXED up. Defines the class; nobody uses it. */
void size_class_define(unsigned id, size_t size);

/* Requests of its size, and of less down to the next smaller class, are of this class from now on; or no more, but of the
 * next larger one. A reader may see the old class a while longer, and each request either of both. */
void size_class_show(unsigned id);
void size_class_hide(unsigned id);

#endif
