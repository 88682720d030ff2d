/* The names of libc. A program that calls them, preloaded or linked, is served by hakmem. */
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#include "api/hot.h"
#include "hakmem.h"

/* Not in musl's headers. */
HAK_EXPORT void *pvalloc(size_t size);
HAK_EXPORT int malloc_trim(size_t pad);

FRAGILE HAK_EXPORT void *malloc(size_t size)
{
    return hot_malloc(size);
}

FRAGILE HAK_EXPORT void free(void *ptr)
{
    hot_free(ptr);
}

/* For linked.c, which compares: who has taken the place of the names above? */
__asm__(".globl own_malloc, own_free\n.hidden own_malloc, own_free\n.set own_malloc, malloc\n.set own_free, free\n");

HAK_EXPORT void *calloc(size_t count, size_t size)
{
    return hak_calloc(count, size);
}

HAK_EXPORT void *realloc(void *ptr, size_t size)
{
    return hak_realloc(ptr, size);
}

HAK_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return hak_aligned_alloc(alignment, size);
}

HAK_EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    return hak_posix_memalign(out, alignment, size);
}

HAK_EXPORT void *memalign(size_t alignment, size_t size)
{
    return hak_memalign(alignment, size);
}

HAK_EXPORT void *valloc(size_t size)
{
    return hak_valloc(size);
}

HAK_EXPORT void *pvalloc(size_t size)
{
    return hak_pvalloc(size);
}

HAK_EXPORT size_t malloc_usable_size(void *ptr)
{
    return hak_malloc_usable_size(ptr);
}

HAK_EXPORT int malloc_trim(size_t pad)
{
    return hak_malloc_trim(pad);
}
