/* Heaps for tests of the heap layer. */
#ifndef HAK_TEST_HEAPS_H
#define HAK_TEST_HEAPS_H

#include "arena/arena.h"
#include "check.h"
#include "hakmem.h"
#include "heap/life.h"
#include "heap/view.h"
#include "spans.h"

/* The calling thread's heap, made if need be. */
static inline struct heap *heap_own(void)
{
    hak_free(hak_malloc(1));
    struct heap *heap = view_load()->heap;
    CHECK(heap != NULL);
    return heap;
}

/* A heap as another thread would have it, its TLS word at `word`. The allocator has started. */
static inline struct heap *heap_other(struct view **word)
{
    *word = STATIC_VIEW(unborn);
    struct heap *heap = life_birth(word);
    CHECK(heap != NULL);
    CHECK(*word == &heap->view);
    return heap;
}

/* Whose block is p? */
static inline struct heap *heap_of(const void *p)
{
    return (struct heap *)(arena_tag(p) & ~(uintptr_t)(SIZE_CLASSES - 1));
}

#endif
