/*
 * Keepers: who serves requests in place of the heaps (check mode). While there is one every heap stays closed, so that each
 * operation comes to the door, and the door asks the keeper. Blocks that heaps have given out before go back to them.
 */
#ifndef HAK_HEAP_KEEPER_H
#define HAK_HEAP_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "os/frame.h"

/* Which functions of the language a block comes from, and goes back by. */
enum family { FAMILY_MALLOC, FAMILY_NEW, FAMILY_NEW_ARRAY, FAMILY_NEW_ALIGNED, FAMILY_NEW_ARRAY_ALIGNED, FAMILY_UNKNOWN };

#define SIZE_UNKNOWN SIZE_MAX

/* How a block is freed, as far as the caller says. */
struct freeing {
    enum family family;
    size_t size; /* that it was requested with */
    uintptr_t site; /* that is to have it next, if it is a large block; 0: the one that had it */
    const struct os_frame *from; /* a function of the library's that the program has called, or NULL */
};

/* What a keeper is asked for. */
struct request {
    size_t size;
    size_t align; /* a power of two */
    enum family family;
    bool zeroed;  /* the block is to read as zero */
};

struct keeper {
    /* A block. NULL: out of memory. `from`: a function of the library's that the program has called. */
    void *(*allocate)(const struct request *request, const struct os_frame *from);

    /* Of any pointer that is not to a block of a heap's. False: nor is it to one of the keeper's. */
    bool (*free)(void *p, const struct freeing *how);
    bool (*size_of)(const void *p, size_t *size);

    /* Makes a live block one of `size` bytes where it is. False: realloc has to move it. */
    bool (*resize)(void *p, size_t size);

    /* A block of a heap's, of so many bytes, was freed. */
    void (*poison)(void *p, size_t bytes);

    /* Gives back what is kept only so that bugs are found. No lock is held. */
    void (*give_back)(void);

    /* Ends the process: a heap has refused this pointer. */
    void (*refuse)(const char *fault, const void *p);

    /* For fork, and for calls from signal handlers. */
    void (*lock)(void);
    void (*unlock)(void);
    bool (*lock_is_mine)(void);
};

/* NULL: the heaps serve. Set once. */
extern HIDDEN const struct keeper *current_keeper;

ALWAYS_INLINE const struct keeper *keeper_now(void)
{
    return load_dependent(&current_keeper);
}

/* From now on it serves all threads. Those that are inside the door go on as before until they come again. */
void keeper_set(const struct keeper *keeper);

#endif
