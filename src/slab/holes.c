/* Pages of a slab that hold nothing. */
#include "base/bits.h"
#include "os/os.h"
#include "slab/slab.h"

_Static_assert(SLAB_UNITS_MAX * UNIT_SIZE / (4 * KIB) <= 32, "a slab has no more pages than its mask has bits");

/* The pages from that of the first byte to that of the last. */
static uint32_t pages_of(size_t first_byte, size_t last_byte, unsigned page_shift)
{
    unsigned first = (unsigned)(first_byte >> page_shift);
    unsigned last = (unsigned)(last_byte >> page_shift);
    return mask32(last + 1) & ~mask32(first);
}

/* Pages with at least a part of a block that is not free. */
static uint32_t pages_in_use(const struct slab *slab, unsigned page_shift)
{
    uint32_t pages = 0;
    for (size_t word = 0; word * 64 < slab->blocks; word++) {
        size_t blocks = min_size(slab->blocks - word * 64, 64);
        uint64_t used = ~slab->bitmap[word] & (blocks == 64 ? ~(uint64_t)0 : ((uint64_t)1 << blocks) - 1);
        for (; used != 0; used &= used - 1) {
            size_t start = (word * 64 + (size_t)__builtin_ctzll(used)) * slab->stride;
            pages |= pages_of(start, start + slab->stride - 1, page_shift);
        }
    }
    return pages;
}

static uint32_t holes_of(const struct slab *slab, unsigned page_shift)
{
    uint32_t all = mask32((unsigned)((slab->units * UNIT_SIZE) >> page_shift));
    return all & ~pages_in_use(slab, page_shift);
}

bool slab_has_holes(const struct slab *slab)
{
    return holes_of(slab, log2_floor(os_page_size())) != 0;
}

size_t slab_purge_holes(struct slab *slab)
{
    unsigned page_shift = log2_floor(os_page_size());
    uint32_t holes = holes_of(slab, page_shift) & ~slab->absent;
    uint32_t purged = (uint32_t)os_purge_pieces(slab->base, holes, page_shift);
    slab->absent |= purged;
    return (size_t)count_ones64(purged) << page_shift;
}

uint32_t slab_clean_units(const struct slab *slab)
{
    unsigned step = (unsigned)units_per_page();
    unsigned pages = (unsigned)(step * UNIT_SIZE / os_page_size());
    uint32_t clean = 0;
    for (unsigned unit = 0, page = 0; page < 32 && slab->absent >> page != 0; unit += step, page += pages)
        if ((slab->absent >> page & mask32(pages)) == mask32(pages))
            clean |= mask32(step) << unit;
    return clean;
}

size_t slab_bytes_of_pages(uint32_t pages)
{
    return count_ones64(pages) * os_page_size();
}

size_t slab_absent_bytes(const struct slab *slab)
{
    return slab->absent == 0 ? 0 : slab_bytes_of_pages(slab->absent);
}

void slab_set_clean(struct slab *slab, uint32_t clean)
{
    unsigned step = (unsigned)units_per_page();
    unsigned pages = (unsigned)(step * UNIT_SIZE / os_page_size());
    for (unsigned unit = 0, page = 0; unit < slab->units; unit += step, page += pages)
        if ((clean >> unit & mask32(step)) == mask32(step))
            slab->absent |= mask32(pages) << page;
}

void slab_note_taken(struct slab *slab, const char *first, const char *last)
{
    size_t start = (size_t)(first - slab->base);
    size_t end = (size_t)(last - slab->base) + slab->stride;
    slab->absent &= ~pages_of(start, end - 1, log2_floor(os_page_size()));
}
