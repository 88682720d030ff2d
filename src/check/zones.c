#include "check/zones.h"

#include <string.h>

#include "base/bits.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "os/os.h"

/* Addresses of eight of these bytes are none. */
enum { ZONE_BYTE = 0xfa, NEW_BYTE = 0xbe, FREED_BYTE = 0xdf };

/* As far as a zone is filled: what is beyond, of a block that is much smaller than its memory, is not looked at. */
#define ZONE_MOST ((size_t)1024)

/* Larger blocks are filled so far; and when they are freed their pages are closed, if nobody else's block is there. */
#define FILL_MOST (256 * KIB)

enum { NATURAL_ALIGN = 16 };

/* Before and behind a block of this size; what strays from a large one often strays further. */
static size_t zone_of(size_t size)
{
    if (size <= 128)
        return 16;
    return size <= 4 * KIB ? 64 : 256;
}

size_t zones_bytes(size_t size, size_t align)
{
    size_t zone = zone_of(size);
    return zone + (align > NATURAL_ALIGN ? align : 0) + size + zone;
}

struct area {
    char *at;
    size_t bytes;
};

static struct area before(const struct checked *block)
{
    size_t bytes = min_size(block->offset, ZONE_MOST);
    return (struct area){checked_start(block) - bytes, bytes};
}

static struct area behind(const struct checked *block)
{
    size_t used = block->offset + block->size;
    return (struct area){checked_start(block) + block->size, min_size(run_of(block)->stride - used, ZONE_MOST)};
}

static struct area inside(const struct checked *block)
{
    return (struct area){checked_start(block), min_size(block->size, FILL_MOST)};
}

static void fill(struct area area, int byte)
{
    memset(area.at, byte, area.bytes);
}

/* The first byte that is another. */
static const char *other(struct area area, unsigned char byte)
{
    uint64_t word;
    uint64_t wanted = 0x0101010101010101u * byte;
    size_t i = 0;
    for (; i + sizeof word <= area.bytes; i += sizeof word) {
        memcpy(&word, area.at + i, sizeof word);
        if (word != wanted)
            break;
    }
    for (; i < area.bytes; i++)
        if ((unsigned char)area.at[i] != byte)
            return area.at + i;
    return NULL;
}

void zones_place(struct checked *block, size_t size, size_t align)
{
    uintptr_t memory = (uintptr_t)checked_memory(block);
    block->offset = (uint32_t)(align_up(memory + zone_of(size), max_size(align, NATURAL_ALIGN)) - memory);
    block->size = size;
    block->has_zones = (policy.checks & CHECK_REDZONE) != 0;
    if (block->has_zones) {
        fill(before(block), ZONE_BYTE);
        fill(behind(block), ZONE_BYTE);
    }
}

bool zones_resize(struct checked *block, size_t size, bool fill_new)
{
    size_t old = block->size;
    if (block->offset + size + zone_of(size) > run_of(block)->stride)
        return false;
    block->size = size;
    if (fill_new && size > old)
        memset(checked_start(block) + old, NEW_BYTE, min_size(size - old, FILL_MOST));
    if (block->has_zones)
        fill(behind(block), ZONE_BYTE);
    return true;
}

const char *zones_changed(const struct checked *block)
{
    if (!block->has_zones)
        return NULL;
    const char *changed = other(before(block), ZONE_BYTE);
    return changed != NULL ? changed : other(behind(block), ZONE_BYTE);
}

void zones_fill_new(const struct checked *block)
{
    fill(inside(block), NEW_BYTE);
}

void zones_fill_freed(void *p, size_t bytes)
{
    memset(p, FREED_BYTE, bytes);
}

void zones_poison(struct checked *block, bool waits)
{
    struct run *run = run_of(block);
    if (waits && block->size > FILL_MOST) {
        run->closed = os_close(run->base, run->units << UNIT_SHIFT);
        block->has_zones = false; /* they read as zero now, also where nothing can be closed */
    }
    if (!run->closed)
        fill(inside(block), FREED_BYTE);
}

const char *zones_changed_after_free(const struct checked *block)
{
    if (!block->poisoned || run_of(block)->closed)
        return NULL;
    const char *changed = other(inside(block), FREED_BYTE);
    return changed != NULL ? changed : zones_changed(block);
}

static bool is_near(uintptr_t value, unsigned byte)
{
    uintptr_t wanted = 0x0101010101010101u * byte;
    return value - wanted + FILL_MOST < 2 * FILL_MOST;
}

bool zones_is_from_new(uintptr_t value)
{
    return is_near(value, NEW_BYTE);
}

bool zones_is_from_freed(uintptr_t value)
{
    return is_near(value, FREED_BYTE);
}
