/* malloc, free, calloc, realloc and their kin, under their hak_ names. */
#include "hakmem.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "api/hot.h"
#include "heap/seal.h"
#include "large/large.h"

FRAGILE void *hak_malloc(size_t size)
{
    return hot_malloc(size);
}

FRAGILE void hak_free(void *ptr)
{
    hot_free(ptr);
}

FRAGILE void hak_free_sized(void *ptr, size_t size)
{
    hot_free_sized(ptr, size);
}

FRAGILE void hak_free_aligned_sized(void *ptr, size_t alignment, size_t size)
{
    (void)alignment;
    hot_free_sized(ptr, size);
}

/* A kept block that is lent again was not all written, perhaps: only what was is cleared. */
static FRAGILE void *calloc_large(size_t bytes)
{
    bool zero;
    if (UNLIKELY(keeper_now() != NULL))
        return door_calloc_kept(bytes);
    void *block = door_malloc_large(bytes, 1, &zero);
    if (block == NULL || zero)
        return block;
    if (large_find(block) != NULL)
        large_clear(block, bytes);
    else
        memset(block, 0, bytes);
    return block;
}

FRAGILE void *hak_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    if (bytes > SMALL_MAX)
        return calloc_large(bytes);
    void *block = hot_malloc(bytes);
    if (block != NULL && !is_sealed(block))
        memset(block, 0, bytes);
    return block;
}

size_t hak_malloc_usable_size(const void *ptr)
{
    return ptr == NULL ? 0 : door_usable_size(ptr);
}

/* Would a fresh block for `size` be no smaller than this one? Then it may stay. Blocks that would waste half
 * of themselves move. */
static bool fits(size_t room, size_t size)
{
    return size <= room && (size >= room / 2 || room <= 64);
}

static bool fits_in_place(void *p, size_t usable, size_t size)
{
    if (!is_sealed(p))
        return fits(usable, size);
    unsigned class = arena_tag(p) % SIZE_CLASSES;
    if (!fits(seal_room(class), size))
        return false;
    seal_resize(p, class, size);
    return true;
}

/* What grew once grows again: a block that moves gets room for a quarter more, which saves every other move. A hardened one
 * ends where its user thinks it does. */
static size_t size_to_grow_to(size_t usable, size_t size)
{
    if (HARDENED)
        return size;
    size_t roomy = usable + usable / 4;
    return size > usable && size < roomy && roomy <= SMALL_MAX ? roomy : size;
}

static FRAGILE void *move_into(void *block, void *ptr, size_t bytes)
{
    memcpy(block, ptr, bytes);
    hot_free(ptr);
    return block;
}

/* A block of `size` bytes that has room for `wanted`. */
static FRAGILE void *block_with_room(size_t wanted, size_t size)
{
    return wanted == size ? hot_malloc(size) : hot_malloc_of(wanted, size, 1);
}

static FRAGILE void *move_to_new_block(void *ptr, size_t usable, size_t size)
{
    int saved = errno;
    size_t wanted = size_to_grow_to(usable, size);
    void *block = block_with_room(wanted, size);
    if (block == NULL && wanted > size) {
        errno = saved;
        block = hot_malloc(size);
    }
    if (block == NULL) {
        if (HARDENED || size > usable)
            return NULL;
        errno = saved; /* a block that could shrink still serves when there is no memory for a smaller one */
        return ptr;
    }
    return move_into(block, ptr, min_size(usable, size));
}

/* To a new block, of the very size: whoever still uses the old one is found. */
static FRAGILE void *move_kept(void *ptr, size_t usable, size_t size)
{
    void *block = hot_malloc(size);
    return block != NULL ? move_into(block, ptr, min_size(usable, size)) : NULL;
}

/* Where the block goes on as one of `size` bytes: here, or, if it is a small one that may as well move, where its slab becomes empty
 * without it. NULL: nowhere. */
static void *resize(void *ptr, size_t usable, size_t size)
{
    if (LIKELY(arena_tag(ptr) >= TAG_KINDS)) {
        if (!fits_in_place(ptr, usable, size))
            return NULL;
        return HARDENED || LIKELY(!slab_is_sparse(arena_span(ptr))) ? ptr : door_settle(ptr, size);
    }
    struct large *large = large_find(ptr);
    if (large == NULL) {
        if (!fits_in_place(ptr, usable, size))
            return NULL;
        door_use_sampled(ptr, size);
        return ptr;
    }
    return size > SMALL_MAX ? door_resize_large(large, size) : NULL;
}

static FRAGILE NOINLINE void *realloc_otherwise(void *ptr, size_t size)
{
    if (ptr == NULL)
        return hot_malloc(size);
    size_t usable = door_usable_size(ptr);
    if (UNLIKELY(size == 0)) {
        hot_free(ptr);
        return NULL;
    }
    if (UNLIKELY(size > PTRDIFF_MAX)) {
        errno = ENOMEM;
        return NULL;
    }
    if (UNLIKELY(keeper_now() != NULL))
        return door_resize_kept(ptr, usable, size) ? ptr : move_kept(ptr, usable, size);
    void *resized = resize(ptr, usable, size);
    return resized != NULL ? resized : move_to_new_block(ptr, usable, size);
}

/* Is it a block of this thread's that stays where it is? Whatever is not is looked at more closely. */
ALWAYS_INLINE bool stays(const void *ptr, size_t size)
{
    if (HARDENED || size == 0)
        return false;
    const struct view *view = view_load();
    uintptr_t class = arena_tag(ptr) ^ (uintptr_t)view;
    if (class >= SIZE_CLASSES || !fits(size_classes[class].size, size))
        return false;
    const struct slab *slab = arena_span(ptr);
    return slab_holds(slab, ptr) && !slab_is_sparse(slab) && load_relaxed(view->top[class]) != ptr;
}

ENTRANCE void *hak_realloc(void *ptr, size_t size)
{
    return LIKELY(stays(ptr, size)) ? ptr : realloc_otherwise(ptr, size);
}

ENTRANCE void *hak_reallocarray(void *ptr, size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    return hak_realloc(ptr, bytes);
}

int hak_malloc_trim(size_t pad)
{
    (void)pad;
    return door_purge(true) > 0;
}

size_t hak_purge(enum hak_purge_level level)
{
    if (level != HAK_PURGE_FREE && level != HAK_PURGE_CACHED) {
        errno = EINVAL;
        return 0;
    }
    return door_purge(level == HAK_PURGE_CACHED);
}

size_t hak_prewarm(size_t size, size_t count)
{
    return size <= SEALED_MAX ? door_prewarm(size + SEAL_BYTES, count) : 0;
}
