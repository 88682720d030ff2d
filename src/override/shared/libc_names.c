/*
 * glibc's second names of the family. A program whose malloc is a wrapper of __libc_malloc, and which leaves the rest of the
 * family to us, must get all of it from one heap. Only in the shared library: in glibc's archive they stand in the
 * same file as names that it needs itself. Harmless where the C library has none.
 */
#include "hakmem.h"

HAK_EXPORT void *__libc_malloc(size_t size);
HAK_EXPORT void __libc_free(void *ptr);
HAK_EXPORT void *__libc_calloc(size_t count, size_t size);
HAK_EXPORT void *__libc_realloc(void *ptr, size_t size);
HAK_EXPORT void *__libc_memalign(size_t alignment, size_t size);
HAK_EXPORT void *__libc_valloc(size_t size);
HAK_EXPORT void *__libc_pvalloc(size_t size);

void *__libc_malloc(size_t size)
{
    return hak_malloc(size);
}

void __libc_free(void *ptr)
{
    hak_free(ptr);
}

void *__libc_calloc(size_t count, size_t size)
{
    return hak_calloc(count, size);
}

void *__libc_realloc(void *ptr, size_t size)
{
    return hak_realloc(ptr, size);
}

void *__libc_memalign(size_t alignment, size_t size)
{
    return hak_memalign(alignment, size);
}

void *__libc_valloc(size_t size)
{
    return hak_valloc(size);
}

void *__libc_pvalloc(size_t size)
{
    return hak_pvalloc(size);
}
