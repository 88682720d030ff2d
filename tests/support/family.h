/*
 * The allocation family under test, as a table of pointers, so that one test serves both sets of names.
 * A test program links exactly one of family_hak.c (the hak_ names) and family_libc.c (malloc, free ...,
 * served by whichever library the program is preloaded or linked with).
 *
 * Calls through the table also hide the functions from the compiler, which would otherwise remove
 * malloc/free pairs and refuse the deliberate errors of the tests.
 */
#ifndef HAK_TEST_FAMILY_H
#define HAK_TEST_FAMILY_H

#include <stddef.h>
#include <stdio.h>

#include "libc_names.h"

struct family {
    const char *name;
    void *(*malloc)(size_t size);
    void (*free)(void *ptr);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *ptr, size_t size);
    void *(*reallocarray)(void *ptr, size_t count, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    int (*posix_memalign)(void **out, size_t alignment, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    void *(*valloc)(size_t size);
    void *(*pvalloc)(size_t size);
    size_t (*usable_size)(void *ptr);
    int (*malloc_trim)(size_t pad);

    /* C23; NULL where the C library serves the family, which has them from 2.43 on. */
    void (*free_sized)(void *ptr, size_t size);
    void (*free_aligned_sized)(void *ptr, size_t alignment, size_t size);

    /* The libc names only, else NULL. */
    void (*cfree)(void *ptr);
    int (*mallopt)(int option, int value);
    struct mallinfo (*mallinfo)(void);
    struct mallinfo2 (*mallinfo2)(void);
    int (*malloc_info)(int options, FILE *out);
    void (*malloc_stats)(void);

    /* NULL where hakmem does not serve the family. */
    size_t (*prewarm)(size_t size, size_t count);
    const char *(*version)(void);
    int (*mode_set)(const char *name);
};

extern const struct family family;

/* Ends the program with a message unless hakmem serves the family. HAK_TEST_ANY_ALLOCATOR=1 in the
 * environment switches that off, to try a test on another allocator. */
void family_require_hakmem(void);

#endif
