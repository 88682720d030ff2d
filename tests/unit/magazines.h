/* Blocks of one class, and a magazine of theirs. */
#ifndef HAK_TEST_MAGAZINES_H
#define HAK_TEST_MAGAZINES_H

#include "heap/magazine.h"
#include "heaps.h"
#include "unit.h"

enum { CLASS = 4, SIZE = 64, BLOCKS = 2000 };

static char *blocks[BLOCKS];

static inline void alloc_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hak_malloc(SIZE);
        CHECK(blocks[i] != NULL);
    }
}

static inline void free_all(size_t count)
{
    for (size_t i = 0; i < count; i++)
        hak_free(blocks[i]);
}

/* An empty magazine of a capacity that the test chooses. */
static inline struct heap *heap_with_capacity(size_t capacity)
{
    struct heap *heap = heap_own();
    magazine_widen(heap, CLASS, capacity);
    magazine_flush(heap, CLASS, SIZE_MAX);
    CHECK(magazine_count(heap, CLASS) == 0);
    CHECK(heap->shelf[CLASS].capacity >= capacity);
    return heap;
}

#endif
