#include "arena/meta.h"

#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "os/os.h"

enum {
    GRAIN_SHIFT = 6,
    GRAIN = 1 << GRAIN_SHIFT,
    KEPT_GRAINS = 72, /* pieces up to this many grains are kept for reuse (4.5 KiB: a magazine of 512) */
};

#define CHUNK_FIRST (256 * KIB)
#define CHUNK_MOST (4 * MIB)

/* A freed piece. It is metadata memory: no user pointer leads here. */
struct piece {
    struct piece *next;
};

struct lock meta_lock = LOCK_INITIALIZER(LOCK_META);

/* Memory that was never used. */
struct range {
    char *at;
    char *end;
};

static struct range chunk; /* of the newest chunk */
static struct range gap;   /* what the alignment of a piece has left before it */
static struct range given; /* by meta_give */
static size_t chunk_next = CHUNK_FIRST;
static size_t committed;
size_t meta_bytes;
static struct piece *pieces[KEPT_GRAINS + 1]; /* by grains */
static bits128 kept;                          /* bit g: there are pieces of g grains */

/* Between two guard pages. NULL: there is no memory for so much, or no address space. */
static char *map_chunk(size_t bytes, size_t page)
{
    char *at = os_reserve(NULL, bytes + 2 * page);
    if (at == NULL)
        return NULL;
    if (os_commit(at + page, bytes))
        return at + page;
    os_release(at, bytes + 2 * page);
    return NULL;
}

/* What is left of the old chunk is lost: at most one request's worth. */
static bool add_chunk(size_t least)
{
    size_t page = max_size(os_page_size(), 4 * KIB);
    size_t bytes = align_up(max_size(least, chunk_next), page);
    char *at = map_chunk(bytes, page);
    if (at == NULL && bytes > align_up(least, page)) {
        bytes = align_up(least, page);
        at = map_chunk(bytes, page);
    }
    if (at == NULL)
        return false;
    chunk = (struct range){at, at + bytes};
    chunk_next = min_size(chunk_next * 2, CHUNK_MOST);
    store_relaxed(&committed, committed + bytes);
    return true;
}

/* NULL: it has not so much. */
static char *cut(struct range *range, size_t bytes, size_t align)
{
    char *at = (char *)align_up((uintptr_t)range->at, align);
    if (range->at == NULL || at > range->end || (size_t)(range->end - at) < bytes)
        return NULL;
    range->at = at + bytes;
    return at;
}

static char *cut_from_chunk(size_t bytes, size_t align)
{
    char *from = chunk.at;
    char *at = cut(&chunk, bytes, align);
    if (at == NULL) {
        if (!add_chunk(bytes + align))
            return NULL;
        from = chunk.at;
        at = cut(&chunk, bytes, align);
    }
    if (at - from > gap.end - gap.at)
        gap = (struct range){from, at};
    return at;
}

/* Heaps are aligned to 16 KiB, with small pieces between them: those share the pages before a heap. */
static void *bump(size_t bytes, size_t align)
{
    char *at = align == GRAIN ? cut(&given, bytes, align) : NULL;
    if (at == NULL && align == GRAIN)
        at = cut(&gap, bytes, align);
    if (at == NULL)
        at = cut_from_chunk(bytes, align);
    if (at != NULL)
        store_relaxed(&meta_bytes, meta_bytes + bytes);
    return at;
}

void *meta_alloc_aligned(size_t bytes, size_t align)
{
    size_t size = align_up(bytes, GRAIN);
    lock_take(&meta_lock);
    void *piece = bump(size, max_size(align, GRAIN));
    lock_drop(&meta_lock);
    return piece;
}

static struct piece *pop(size_t grains)
{
    struct piece *piece = pieces[grains];
    pieces[grains] = piece->next;
    if (piece->next == NULL)
        kept &= ~((bits128)1 << grains);
    return piece;
}

static void push(void *freed, size_t grains)
{
    struct piece *piece = freed;
    piece->next = pieces[grains];
    pieces[grains] = piece;
    kept |= (bits128)1 << grains;
}

/* The smallest that is large enough; what is left of it is kept. Magazines that have grown leave pieces of each size
 * behind, and slabs want small ones. */
static struct piece *take_kept(size_t grains)
{
    bits128 fitting = kept & ~mask128((unsigned)grains);
    if (fitting == 0)
        return NULL;
    size_t found = lowest_one128(fitting);
    struct piece *piece = pop(found);
    if (found > grains)
        push((char *)piece + (grains << GRAIN_SHIFT), found - grains);
    return piece;
}

void *meta_alloc(size_t bytes)
{
    size_t grains = divide_up(bytes, GRAIN);
    if (grains > KEPT_GRAINS)
        return meta_alloc_aligned(bytes, GRAIN);
    lock_take(&meta_lock);
    struct piece *piece = take_kept(grains);
    void *fresh = piece == NULL ? bump(grains << GRAIN_SHIFT, GRAIN) : NULL;
    lock_drop(&meta_lock);
    if (piece == NULL)
        return fresh;
    memset(piece, 0, grains << GRAIN_SHIFT);
    return piece;
}

void meta_free(void *freed, size_t bytes)
{
    size_t grains = divide_up(bytes, GRAIN);
    if (freed == NULL || grains > KEPT_GRAINS)
        return;
    lock_take(&meta_lock);
    push(freed, grains);
    lock_drop(&meta_lock);
}

void meta_give(char *zero, size_t bytes)
{
    lock_take(&meta_lock);
    ASSERT(given.at == NULL);
    given = (struct range){zero, zero + bytes};
    store_relaxed(&committed, committed + bytes);
    lock_drop(&meta_lock);
}

size_t meta_committed(void)
{
    return load_relaxed(&committed);
}

size_t meta_absent(void)
{
    size_t used = load_relaxed(&meta_bytes);
    return max_size(load_relaxed(&committed), used) - used;
}
