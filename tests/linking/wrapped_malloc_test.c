/*
 * A program that wraps malloc, calloc, realloc and free around glibc's second names, and takes aligned blocks from
 * wherever they come, with hakmem preloaded: all of it is one heap.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);
extern void *__libc_memalign(size_t alignment, size_t size);

static size_t calls;

void *malloc(size_t size)
{
    calls++;
    return __libc_malloc(size);
}

void free(void *block)
{
    calls++;
    __libc_free(block);
}

void *calloc(size_t count, size_t size)
{
    calls++;
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    calls++;
    return __libc_realloc(block, size);
}

static void use(void *block, size_t size)
{
    CHECK(block != NULL && malloc_usable_size(block) >= size);
    memset(block, 1, size);
    block = realloc(block, size * 2);
    CHECK(block != NULL && ((char *)block)[size - 1] == 1);
    free(block);
}

int main(void)
{
    char *text = strdup("the wrapper serves the C library too");
    CHECK(calls > 0 && malloc_usable_size(text) == 48); /* a class of hakmem's */
    free(text);
    for (size_t size = 1; size < 200000; size = size * 3 / 2 + 1) {
        use(malloc(size), size);
        use(calloc(1, size), size);
        use(reallocarray(NULL, 1, size), size);
        use(aligned_alloc(64, size), size);
        use(memalign(4096, size), size);
        use(valloc(size), size);
        use(__libc_memalign(256, size), size);
        void *block = NULL;
        CHECK(posix_memalign(&block, 32, size) == 0 && (uintptr_t)block % 32 == 0);
        use(block, size);
    }
    puts("wrapped malloc: ok");
    return 0;
}
