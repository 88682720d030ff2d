#include "slab/slab.h"

#include <string.h>

#include "arena/meta.h"
#include "base/bits.h"

static size_t record_bytes(uint32_t blocks)
{
    return sizeof(struct slab) + divide_up(blocks, 64) * sizeof(uint64_t);
}

size_t slab_bytes(unsigned class)
{
    return record_bytes(size_classes[class].blocks);
}

void slab_prepare(struct slab *slab, unsigned class, void *base)
{
    const struct size_class *c = &size_classes[class];
    slab->base = base;
    slab->stride = c->size;
    slab->reciprocal = c->reciprocal;
    slab->blocks = c->blocks;
    slab->free = c->blocks;
    slab->class = (uint8_t)class;
    slab->units = (uint8_t)c->units;
    slab->bucket = SLAB_BUCKETS;
    memset(slab->bitmap, 0xff, c->blocks / 64 * sizeof(uint64_t));
    if (c->blocks % 64 != 0)
        slab->bitmap[c->blocks / 64] = ((uint64_t)1 << c->blocks % 64) - 1;
}

struct slab *slab_make(unsigned class, void *base)
{
    struct slab *slab = meta_alloc(slab_bytes(class));
    if (slab != NULL)
        slab_prepare(slab, class, base);
    return slab;
}

void slab_discard(struct slab *slab)
{
    meta_free(slab, record_bytes(slab->blocks));
}

unsigned slab_take(struct slab *slab, void **top, unsigned want)
{
    unsigned taken = 0;
    uint32_t word = slab->hint;
    void **first = top;
    if (want > slab->free)
        want = slab->free;
    while (taken < want) {
        uint64_t bits = slab->bitmap[word];
        char *base = slab->base + (size_t)word * 64 * slab->stride;
        while (bits != 0 && taken < want) {
            *top-- = base + (size_t)(unsigned)__builtin_ctzll(bits) * slab->stride;
            bits &= bits - 1;
            taken++;
        }
        slab->bitmap[word] = bits;
        if (bits == 0)
            word++;
    }
    slab->hint = (uint16_t)word;
    slab->free -= taken;
    if (slab->absent != 0 && taken > 0)
        slab_note_taken(slab, *first, top[1]);
    return taken;
}

UNSANITIZED bool slab_is_free(const struct slab *slab, const void *p)
{
    uint32_t index = slab_index(slab, p);
    return (slab->bitmap[index / 64] >> index % 64 & 1) != 0;
}

void slab_unput(struct slab *slab, const void *p)
{
    uint32_t index = slab_index(slab, p);
    slab->bitmap[index / 64] &= ~((uint64_t)1 << index % 64);
    slab->free--;
}
