/* Blocks with an alignment of their own. */
#include "hakmem.h"

#include <errno.h>
#include <stdint.h>

#include "api/hot.h"
#include "heap/seal.h"
#include "os/os.h"

/* Blocks of this size and of all larger ones are aligned to it, whatever their class; those of 8 bytes to 8. */
#define ALL_ALIGNED_TO ((size_t)SIZE_CLASS_STEP)

/* A block for a request of `bytes`, of which `size` are used. All of that class are aligned; but a keeper that has come since the
 * caller looked has not been told of the alignment. */
static FRAGILE void *of_size(size_t alignment, size_t bytes, size_t size)
{
    void *block = hot_malloc(bytes);
    if (UNLIKELY(((uintptr_t)block & (alignment - 1)) != 0)) {
        hot_free(block);
        return door_malloc_kept(size, alignment, FAMILY_MALLOC);
    }
    if (is_sealed(block))
        seal_resize(block, arena_tag(block) % SIZE_CLASSES, size);
    return block;
}

/* `alignment` is a power of two. */
static FRAGILE void *allocate(size_t alignment, size_t size)
{
    if (UNLIKELY(!view_is(VIEW_HEAP))) {
        if (!door_open()) {
            errno = ENOMEM;
            return NULL;
        }
        if (keeper_now() != NULL)
            return door_malloc_kept(size, alignment, FAMILY_MALLOC);
    }
    if (alignment <= ALL_ALIGNED_TO && size <= SEALED_MAX)
        return of_size(alignment, alignment > 8 ? max_size(size, ALL_ALIGNED_TO - SEAL_BYTES) : size, size);
    unsigned class = size <= SEALED_MAX ? size_class_aligned(alignment, size + SEAL_BYTES) : SIZE_CLASSES;
    if (class < SIZE_CLASSES)
        return of_size(alignment, seal_room(class), size);
    bool zero;
    return door_malloc_large(size, alignment, &zero);
}

FRAGILE void *hak_aligned_alloc(size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment))) {
        errno = EINVAL;
        return NULL;
    }
    return allocate(alignment, size);
}

FRAGILE int hak_posix_memalign(void **out, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0)
        return EINVAL;
    int saved = errno;
    void *block = allocate(alignment, size);
    errno = saved;
    if (block == NULL)
        return ENOMEM;
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
    return allocate(rounded, size);
}

FRAGILE void *hak_valloc(size_t size)
{
    return allocate(os_page_size(), size);
}

FRAGILE void *hak_pvalloc(size_t size)
{
    if (size > PTRDIFF_MAX - os_page_size()) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate(os_page_size(), align_up(size, os_page_size()));
}
