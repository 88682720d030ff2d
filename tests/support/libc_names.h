/* Names of glibc's malloc.h, for libraries that lack them: tests that use them compile, and are skipped. */
#ifndef HAK_TEST_LIBC_NAMES_H
#define HAK_TEST_LIBC_NAMES_H

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>

#if !defined(__GLIBC__)

struct mallinfo {
    int uordblks;
    int hblkhd;
};

struct mallinfo2 {
    size_t arena;
    size_t uordblks;
    size_t hblkhd;
};

enum {
    M_MXFAST = 1,
    M_TRIM_THRESHOLD = -1,
    M_TOP_PAD = -2,
    M_MMAP_THRESHOLD = -3,
    M_MMAP_MAX = -4,
    M_PERTURB = -6,
    M_ARENA_TEST = -7,
    M_ARENA_MAX = -8,
};

int mallopt(int option, int value);
struct mallinfo2 mallinfo2(void);
int malloc_info(int options, FILE *out);
void malloc_stats(void);
int malloc_trim(size_t pad);
void *pvalloc(size_t size);

/* hakmem's, or NULL. */
#pragma weak mallopt
#pragma weak mallinfo2
#pragma weak malloc_info
#pragma weak malloc_stats
#pragma weak malloc_trim
#pragma weak pvalloc

#endif

#endif
