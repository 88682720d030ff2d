/* Blocks with an alignment of their own. */
#include "hakmem.h"

#include <errno.h>
#include <stdint.h>

#include "api/hot.h"
#include "heap/seal.h"
#include "os/os.h"

/* Blocks of this size and of all larger ones are aligned to it, whatever their class; those of 8 bytes to 8. */
#define ALL_ALIGNED_TO ((size_t)SIZE_CLASS_STEP)

/* The hardened library charges `bytes`. A keeper that has come since the caller looked has been told neither of the alignment nor of
 * the size. */
static FRAGILE void *sealed_of_size(size_t alignment, size_t bytes, size_t size)
{
    void *block = hot_malloc(bytes);
    if (UNLIKELY(((uintptr_t)block & (alignment - 1)) != 0 || arena_tag(block) == TAG_CHECKED)) {
        hot_free(block);
        return door_malloc_kept(size, alignment, FAMILY_MALLOC);
    }
    if (is_sealed(block))
        seal_resize(block, arena_tag(block) % SIZE_CLASSES, size);
    return block;
}

/* A block of the class of `bytes`, all of which are aligned. */
static FRAGILE void *of_size(size_t alignment, size_t bytes, size_t size)
{
    return HARDENED ? sealed_of_size(alignment, bytes, size) : hot_malloc_of(bytes, size, alignment);
}

/* `alignment` is a power of two. */
static NOINLINE FRAGILE void *allocate_any(size_t alignment, size_t size)
{
    if (UNLIKELY(!view_is(VIEW_HEAP))) {
        if (!door_open()) {
            errno = ENOMEM;
            return NULL;
        }
        if (keeper_now() != NULL)
            return door_malloc_kept(size, max_size(alignment, 8), FAMILY_MALLOC); /* 1: as of malloc, which charges before */
    }
    if (alignment <= ALL_ALIGNED_TO && size <= SEALED_MAX)
        return of_size(alignment, alignment > 8 ? max_size(size, ALL_ALIGNED_TO - SEAL_BYTES) : size, size);
    unsigned class = size <= SEALED_MAX ? size_class_aligned(alignment, size + SEAL_BYTES) : SIZE_CLASSES;
    if (class < SIZE_CLASSES)
        return of_size(alignment, seal_room(class), size);
    bool zero;
    return door_malloc_large(size, alignment, &zero);
}

/* A block from its magazine, or NULL: then nothing is charged, and allocate_any has to look. The fixed class of a multiple of the
 * alignment has blocks that are all aligned (size_class_aligned); a view that is closed has none in any magazine. For a request of
 * nothing, and an alignment of zero, there is none either. */
ALWAYS_INLINE void *pop_aligned(size_t alignment, size_t size)
{
    if (HARDENED || UNLIKELY(alignment > SLAB_ALIGN_MOST || size > SMALL_MAX))
        return NULL;
    size_t bytes = align_up(size, alignment);
    if (UNLIKELY(bytes - 1 >= SMALL_MAX))
        return NULL;
    unsigned class = size_class_of(bytes);
    if (UNLIKELY(class >= SIZE_CLASSES_FIXED))
        return NULL;
    struct view *view = view_load();
    void *block = hot_pop_of(class, size, view, hot_no_block);
    if (UNLIKELY(block == NULL))
        (void)owner_subtract(&view->budget, -(int64_t)size);
    return block;
}

FRAGILE void *hak_aligned_alloc(size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment))) {
        errno = EINVAL;
        return NULL;
    }
    void *block = pop_aligned(alignment, size);
    return LIKELY(block != NULL) ? block : allocate_any(alignment, size);
}

static NOINLINE FRAGILE int posix_memalign_any(void **out, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0)
        return EINVAL;
    int saved = errno;
    void *block = allocate_any(alignment, size);
    errno = saved;
    if (block == NULL)
        return ENOMEM;
    *out = block;
    return 0;
}

FRAGILE int hak_posix_memalign(void **out, size_t alignment, size_t size)
{
    /* A power of two, and a multiple of a pointer; or zero, to which nothing is aligned. */
    bool is_sound = (alignment & ((alignment - 1) | (sizeof(void *) - 1))) == 0;
    void *block = LIKELY(is_sound) ? pop_aligned(alignment, size) : NULL;
    if (UNLIKELY(block == NULL))
        return posix_memalign_any(out, alignment, size);
    *out = block;
    return 0;
}

FRAGILE void *hak_memalign(size_t alignment, size_t size)
{
    if (alignment > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t rounded = 1;
    while (rounded < alignment)
        rounded *= 2;
    return allocate_any(rounded, size);
}

FRAGILE void *hak_valloc(size_t size)
{
    return allocate_any(os_page_size(), size);
}

FRAGILE void *hak_pvalloc(size_t size)
{
    if (size > PTRDIFF_MAX - os_page_size()) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate_any(os_page_size(), align_up(size, os_page_size()));
}
