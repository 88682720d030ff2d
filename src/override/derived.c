/*
 * Names that another allocator may leave to us: a program that brings malloc, calloc, realloc and free of its own, a
 * library that was preloaded first. What they take and give are that allocator's blocks, so they are made of the four
 * names that every allocator has, and the linker says whose those are.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "hakmem.h"
#include "override/linked.h"

/* Of C23, or no more in current headers. */
HAK_EXPORT void free_sized(void *ptr, size_t size);
HAK_EXPORT void free_aligned_sized(void *ptr, size_t alignment, size_t size);
HAK_EXPORT void cfree(void *ptr);

HAK_EXPORT void *reallocarray(void *ptr, size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(ptr, bytes);
}

HAK_EXPORT void free_sized(void *ptr, size_t size)
{
    linked_free_sized(ptr, size);
}

HAK_EXPORT void free_aligned_sized(void *ptr, size_t alignment, size_t size)
{
    (void)alignment;
    linked_free_sized(ptr, size);
}

HAK_EXPORT void cfree(void *ptr)
{
    free(ptr);
}
