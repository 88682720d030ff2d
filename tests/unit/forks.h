/* What tests of forks share: blocks of a thread, which the child uses as well. */
#ifndef HAK_TEST_FORKS_H
#define HAK_TEST_FORKS_H

#include <unistd.h>

#include "heaps.h"

/* Another thread brings it about. */
#define CHECK_SOON(condition)                         \
    do {                                              \
        for (int i = 0; i < 5000 && !(condition); i++) \
            usleep(1000);                             \
        CHECK(condition);                             \
    } while (0)

enum { FORK_SIZE = 64, FORK_CLASS = 4 };

/* Of the thread that called forks_fill last. */
extern struct heap *forks_heap;

/* The calling thread has blocks, and some in its magazine. */
void forks_fill(void *unused);

/* Allocates and frees blocks of all sizes; those of forks_fill are as they were. */
void forks_use(void);

/* The same, and frees those of forks_fill. */
void forks_use_and_free(void *unused);

/* Forks; the child does its part and must end well. */
void forks_and(void (*part)(void));

#endif
