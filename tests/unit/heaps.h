/* Heaps for tests of the heap layer. */
#ifndef HAK_TEST_HEAPS_H
#define HAK_TEST_HEAPS_H

#include <sys/mman.h>
#include <unistd.h>

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

/* The TLS word of a thread whose end nobody is told of, and what becomes of it. */
static inline struct view **word_on_a_stack(void)
{
    void *stack = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    return stack;
}

static inline void unmap_stack(struct view **word)
{
    CHECK(munmap(word, (size_t)sysconf(_SC_PAGESIZE)) == 0);
}

/* Whose block is p? */
static inline struct heap *heap_of(const void *p)
{
    return (struct heap *)(arena_tag(p) & ~(uintptr_t)(SIZE_CLASSES - 1));
}

#endif
