/*
 * Slabs: runs of 1 to SLAB_UNITS_MAX units that hold blocks of one size class, owned by one heap, described out of line.
 * The bitmap has a 1 for each block that is neither live nor in a magazine.
 *
 * A slab knows nothing of threads: its owner works on it inside the door, a thief under the heap's lock.
 */
#ifndef HAK_SLAB_SLAB_H
#define HAK_SLAB_SLAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "config/size_class.h"

enum { SLAB_BUCKETS = 4 }; /* partly used slabs are kept apart by how full they are */

/* How long ago a block came or went, counted in looks for holes. */
enum slab_heat {
    SLAB_COLD, /* its holes are purged */
    SLAB_COOL, /* since before the last look */
    SLAB_HOT,
};

struct slab {
    char *base;
    uint32_t stride;     /* bytes */
    uint32_t reciprocal; /* ceil(2^32 / stride) */
    uint32_t blocks;
    uint32_t free;       /* bits set */
    uint16_t hint;       /* no bit is set in words before this one */
    uint16_t settled;    /* with fewer free blocks than that it stays in its list; in none: 0 */
    uint8_t class;
    uint8_t units;
    uint8_t bucket;      /* in which list it is; SLAB_BUCKETS: in none */
    uint8_t heat;        /* enum slab_heat */
    uint32_t absent;     /* bit p: page p has no memory: it was given back or is new, and no block there was taken since */
    uint8_t fence;       /* units behind it that nothing may touch */
    uint8_t collapses;   /* the superslab's, when `absent` was right (span/huge.h) */
    uint16_t touched;    /* pages from the first that there is memory for; of the hardened library (heap/fence.h) */
    struct list_node link;
    uint64_t bitmap[];
};

/* What is wrong with a pointer that was given to a slab. */
enum slab_verdict {
    SLAB_FINE,
    SLAB_NOT_A_BLOCK,  /* not the start of a block */
    SLAB_DOUBLE_FREE,  /* the block is free already */
};

_Static_assert(SLAB_UNITS_MAX * UNIT_SIZE / 8 <= UINT16_MAX, "a slab has more blocks than `settled` can say");

/* Makes a slab of `class` over the units at `base`, all blocks free, in zeroed memory of so many bytes. */
size_t slab_bytes(unsigned class);
void slab_prepare(struct slab *slab, unsigned class, void *base);

/* The same in metadata memory. NULL: there is none. */
struct slab *slab_make(unsigned class, void *base);

/* Frees the record. */
void slab_discard(struct slab *slab);

/* Is there a page in which no block is used? */
bool slab_has_holes(const struct slab *slab);

/* Bit u of `clean`: unit u of the new slab reads as zero, and has no pages. */
void slab_set_clean(struct slab *slab, uint32_t clean);

/* Takes up to `want` blocks in address order and writes them to top[0], top[-1], …: popped from the top they
 * come out ascending. Returns how many. Does not touch the blocks. */
unsigned slab_take(struct slab *slab, void **top, unsigned want);

/* The index of the block that starts at p, which lies in the slab, or `blocks` and more if none does. */
ALWAYS_INLINE uint32_t slab_index(const struct slab *slab, const void *p)
{
    size_t offset = (size_t)((const char *)p - slab->base);
    uint32_t index = (uint32_t)(offset * slab->reciprocal >> 32);
    return (size_t)index * slab->stride == offset ? index : UINT32_MAX;
}

/* Is p the start of a block, whatever its state? */
ALWAYS_INLINE bool slab_holds(const struct slab *slab, const void *p)
{
    return slab_index(slab, p) < slab->blocks;
}

/* Is the block at p, which is the start of one, free? Without a lock, at some moment. */
bool slab_is_free(const struct slab *slab, const void *p);

/* Takes back blocks, of which the first lies in the slab, up to one that does not, or is refused: then *verdict says why.
 * Returns how many. */
ALWAYS_INLINE unsigned slab_put_run(struct slab *slab, void *const *blocks, unsigned count, enum slab_verdict *verdict)
{
    size_t bytes = slab->units * UNIT_SIZE;
    uint32_t hint = slab->hint;
    unsigned done = 0;
    *verdict = SLAB_FINE;
    do {
        uint32_t index = slab_index(slab, blocks[done]);
        if (UNLIKELY(index >= slab->blocks)) {
            *verdict = SLAB_NOT_A_BLOCK;
            break;
        }
        uint64_t bit = (uint64_t)1 << index % 64;
        uint64_t bits = slab->bitmap[index / 64];
        if (UNLIKELY((bits & bit) != 0)) {
            *verdict = SLAB_DOUBLE_FREE;
            break;
        }
        slab->bitmap[index / 64] = bits | bit;
        hint = index / 64 < hint ? index / 64 : hint;
    } while (++done < count && (size_t)((char *)blocks[done] - slab->base) < bytes);
    slab->hint = (uint16_t)hint;
    slab->free += done;
    return done;
}

/* Takes back a block, which lies in the slab. Anything but SLAB_FINE leaves the slab as it was. */
ALWAYS_INLINE enum slab_verdict slab_put(struct slab *slab, void *p)
{
    enum slab_verdict verdict;
    (void)slab_put_run(slab, &p, 1, &verdict);
    return verdict;
}

/* Gives back the pages without a block that is live or in a magazine. Returns their bytes: 0 where the kernel refused, or
 * all such pages are given back already. */
size_t slab_purge_holes(struct slab *slab);

/* Bytes of pages, of which there is a bit each; and of those that have no memory. */
size_t slab_bytes_of_pages(uint32_t pages);
size_t slab_absent_bytes(const struct slab *slab);

/* Blocks were taken, from the one at `first` to the one at `last`: their pages may get memory. */
void slab_note_taken(struct slab *slab, const char *first, const char *last);

/* Bit u: no page of unit u has memory. */
uint32_t slab_clean_units(const struct slab *slab);

/* Undoes a slab_put of p, and nothing else happened to the slab since. */
void slab_unput(struct slab *slab, const void *p);

/* Of a list: a slab with so many free blocks belongs in a later one, or in none. */
ALWAYS_INLINE uint32_t slab_bucket_end(const struct slab *slab, unsigned bucket)
{
    return bucket == SLAB_BUCKETS - 1 ? slab->blocks : (bucket + 1) * (slab->blocks / SLAB_BUCKETS) + 1;
}

/* The list a slab with this many free blocks belongs in: 0 is the fullest. */
ALWAYS_INLINE unsigned slab_bucket_for(const struct slab *slab)
{
    unsigned bucket = 0;
    while (bucket < SLAB_BUCKETS - 1 && slab->free >= slab_bucket_end(slab, bucket))
        bucket++;
    return bucket;
}

/* Is it on a list, and half of its blocks free? Without a lock, at some moment. */
static inline UNSANITIZED bool slab_is_sparse(const struct slab *slab)
{
    return (unsigned)slab->bucket - SLAB_BUCKETS / 2 < SLAB_BUCKETS / 2;
}

#endif
