/*
 * The heap profiler, as the heap knows it: who is told of the requests that are samples (budget.h), and serves those for
 * small blocks itself, so that they come back to the door when they are freed.
 *
 * Its functions are called inside the door, or by threads without a heap that hold no lock. They take profiler_lock.
 */
#ifndef HAK_HEAP_PROFILER_H
#define HAK_HEAP_PROFILER_H

#include <stddef.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "os/frame.h"

struct sample;

struct profiler {
    /* A block of this class, a fixed one, for a request of `size` bytes. NULL: the heap's own will do. `from`: a function of the library's
     * that the program has called. */
    void *(*take)(unsigned class, size_t size, const struct os_frame *from);

    /* Takes back one from units tagged TAG_SAMPLED. A pointer that is not to a live one ends the process. */
    void (*put)(void *p);

    /* The live block at p, from such units, is used as one of `size` bytes from now on. */
    void (*used)(const void *p, size_t size);

    /* The large block at p was requested with `size` bytes. What to hand back when it is freed or resized; NULL: nothing. */
    struct sample *(*note)(const void *p, size_t size, const struct os_frame *from);
    struct sample *(*resized)(struct sample *sample, const void *before, const void *p, size_t size);
    void (*freed)(struct sample *sample, const void *p);
};

/* NULL: there never was one. Set once. */
extern HIDDEN const struct profiler *current_profiler;

extern HIDDEN struct lock profiler_lock;

ALWAYS_INLINE const struct profiler *profiler_now(void)
{
    return load_dependent(&current_profiler);
}

#endif
