/* The thread's view: the one word of thread-local storage. */
#ifndef HAK_HEAP_VIEW_H
#define HAK_HEAP_VIEW_H

#include "base/atomic.h"
#include "heap/heap.h"

/* Never NULL. Others write it to close the view (freeze.c, under the heap's lock), hence the atomics. */
extern HIDDEN _Thread_local struct view *thread_view __attribute__((tls_model("initial-exec")));

ALWAYS_INLINE struct view *view_load(void)
{
    return load_dependent(&thread_view);
}

/* Is the calling thread's view one of these? */
ALWAYS_INLINE bool view_is(enum view_kind kind)
{
    return load_relaxed(&view_load()->kind) == kind;
}

/* Of threads that have no heap. Who closes a heap from outside may set TWIN_BIT in such a thread's word, if it has just
 * taken the place of the owner's (freeze.c): in the address of a view the bit is set already, or leads to its double. */
struct static_views {
    struct static_view {
        int64_t budget;
        struct heap *heap;
        enum view_kind kind; /* nobody looks at the magazines, so there are none */
    } ALIGNED(64) unborn, birth, dead;
};

/* A pointer to a view leads here, so it may be followed no further: malloc and its kin look at the budget, or the tag, before. */
_Static_assert(offsetof(struct static_view, heap) == offsetof(struct view, heap)
                   && offsetof(struct static_view, kind) == offsetof(struct view, kind)
                   && offsetof(struct view, top) <= sizeof(struct static_view),
               "the beginning of a view");

struct doubled_views {
    struct static_views views;
    char between[((size_t)1 << TWIN_BIT) - sizeof(struct static_views)]; /* the loader maps it with the rest: metadata (start.c) */
    struct static_views doubles; /* as the views, once somebody may set the bit */
};

_Static_assert(offsetof(struct doubled_views, doubles) == (size_t)1 << TWIN_BIT, "where the bit leads");

extern HIDDEN struct doubled_views view_statics;

#define STATIC_VIEW(name) ((struct view *)(void *)&view_statics.views.name)

/* Makes the doubles, if nobody has yet. Before the bit is set in any word. */
void view_prepare_doubles(void);

/* Closes every magazine of a view in fresh memory. Threads that do it at once write the same. */
void view_close(struct view *view);

#endif
