/*
 * The per-thread heap.
 *
 * A *view* is what the two hot functions see: a byte budget and the top of a magazine per class. The thread's TLS
 * word (view.h) points to the view of its heap or to a closed view, with which every operation comes to the door: its
 * budget is spent, and no tag names it. Closed views are: the heap's own twin, while somebody outside needs this
 * heap or its operations, whose magazines are all closed (empty for malloc, full for free); and the static ones, for
 * threads that have no heap yet or no more.
 *
 * Who writes what:
 *   view.budget, view.top            the owner thread only, ever
 *   slots of a magazine              the owner; a thief that froze the heap writes NULL into those that no
 *                                    operation in flight can touch (freeze.c)
 *   shelves, slabs, outboxes, stock  the owner inside the door; whoever holds the idle heap; a thief under
 *                                    heap.lock
 *   inbox                            anyone pushes letters; the three above take them all
 *   unread                           the three above
 */
#ifndef HAK_HEAP_HEAP_H
#define HAK_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "config/size_class.h"
#include "heap/counts.h"
#include "large/large.h"
#include "os/os.h"
#include "slab/slab.h"

/* A magazine as the hot path sees it is one pointer, its *top*: the slot of the block pushed last. slots[0] is always NULL,
 * so that an empty magazine is seen by the value that malloc loads anyway; the slot behind the last usable one is
 * SLOT_FULL, so that a full one is seen by the slot that free is about to write. No block has that address. */
#define SLOT_FULL ((void *)1)

/* The magazine of a class that has none, and of one that is held (magazine.h): empty and full. */
extern HIDDEN void *closed_magazine[2];

enum view_kind {
    VIEW_HEAP,    /* a heap's own: magazines as they are */
    VIEW_TWIN,    /* a heap's closed twin */
    VIEW_UNBORN,  /* the thread has no heap yet */
    VIEW_BIRTH,   /* the thread is getting its heap; a signal handler must not start again */
    VIEW_DEAD,    /* the thread has given its heap back */
};

/* Tags are view address | class, so views are aligned to more than SIZE_CLASSES. Budget and the tops of
 * small classes are neighbours. */
struct view {
    int64_t budget;           /* bytes until the next heartbeat or sample */
    struct heap *heap;        /* NULL for the static views */
    enum view_kind kind;
    void **top[SIZE_CLASSES]; /* of the magazines; a static view ends here (view.h) */
};

/* What a heap has of a class behind the door. */
struct shelf {
    void **slots;        /* the magazine's storage; NULL until first use */
    uint64_t blocks_out; /* taken from this heap's slabs and not yet put back */
    uint16_t capacity;   /* usable slots */
    uint16_t holes;      /* slots below the top that others have emptied; the owner closes them (freeze.c) */
    uint8_t last_event;  /* enum shelf_event: the door's last visit */
    uint8_t streak;      /* refills in a row */
    bool touched;        /* the door was here since the last trim */
    uint8_t borrows;     /* the magazine may hold blocks of the fixed class (classes.h) */
    struct slab *current;
    struct list partial[SLAB_BUCKETS];
};

/* A look for holes of a busy thread: through the lists of partly used slabs, of every few classes, part by part. Or of a heap that grows
 * beyond its record: of all classes, whatever their slabs' age. */
struct hole_look {
    struct list_node *next; /* the slab with which it goes on; NULL: the first of the next list */
    uint64_t ms;            /* when it was last continued */
    uint32_t class;         /* whose lists it is in; SIZE_CLASSES and more: it is over */
    uint32_t lists;         /* so many of them are begun */
    uint32_t record;        /* the heap's, when a look of a heap that grows is over; else 0 */
};

enum { OUTBOXES = 64, STOCK_GROUPS = 4, WOKEN_MOST = 3 };

/* Up to 16 neighbouring free units, taken together so that busy threads do not share lines of the tag map. */
struct unit_group {
    char *base;        /* of the group, aligned to its size */
    uint32_t units;    /* its size */
    uint32_t free;     /* bit u: unit u is in stock */
    uint32_t clean;    /* bit u: it is, and reads as zero, and has no pages */
    uint8_t collapses; /* the superslab's, when `clean` was right (span/huge.h) */
};

/* The stack that a signal handler runs on, if it has one of its own (sigaltstack); else empty. */
struct handler_stack {
    uintptr_t low;
    uintptr_t high;
};

/* Signal handlers since one interrupted a hot function (interrupt.h). */
struct interrupt_state {
    uint32_t depth;
    uintptr_t frame; /* of the first of them */
    struct handler_stack stack;
};

/* The address of a heap's twin is that of its view with this bit set: whoever closes the heap from outside has the
 * kernel set it in the owner's word (freeze.c). */
enum { TWIN_BIT = 13, HEAP_ALIGN = 2 << TWIN_BIT };

/* Where the owner is. */
enum door {
    DOOR_OUTSIDE,
    DOOR_INSIDE,
    DOOR_WAITS, /* for a lock, where it comes to its door or ends: nothing of the heap is half done */
};

struct heap {
    struct view view;

    /* Owner's, cold. */
    uint32_t in_door;            /* enum door: written by the owner, read by thieves */
    uint32_t visits;             /* of the owner to the door; read by the purger */
    int64_t granted;             /* bytes of budget granted in all: requested = granted - budget */
    int64_t beat_after;          /* so many requested bytes: beyond them a heartbeat is due (budget.h) */
    int64_t sample_after;        /* the same of the profiler's next sample */
    size_t sample_rate;          /* policy.profile_bytes when that was drawn */
    uint64_t random;             /* for it; 0: not begun */
    struct view **tls;           /* the owner's TLS word; NULL if no thread owns the heap */
    struct os_thread thread;     /* the owner, if tls is not NULL */
    uint32_t trim_next;          /* class that the next heartbeat looks at */
    uint32_t letters_kept;
    struct letter *letters;      /* empty ones, for reuse */
    struct letter *unread;       /* taken from the inbox, and not read yet */
    size_t outbox_bytes;
    struct heap *piled;          /* a heap whose mail should be collected, or NULL */
    struct heap *looked_at;      /* by sleeper_look, the last time; or NULL */
    size_t freed;                /* bytes of large blocks, and what left the magazines or was sent, since the last heartbeat */
    uint64_t beat_ms;            /* when that was, */
    int64_t beat_at;             /* how much had been requested by then, */
    size_t beat_bytes;           /* and since the one before */
    size_t capacity_bytes;       /* of all magazines, if full */
    int64_t looked_to;           /* bytes of budget granted when it was last asked for a sample */
    uint64_t aged_ms;            /* when this heap last began to look for holes, all old free units being given back */
    uint32_t record;             /* units; beyond them its slabs are more than ever, and it looks for holes first; 0 until it has seen all */
    struct hole_look look;       /* for holes */
    uint64_t prepared;           /* bit c: among the slabs of class c on its lists one without a block in use may be */
    size_t units;                /* that its slabs hold */
    size_t hole_bytes;           /* of its slabs, pages that have no memory */
    struct heap_counts *counts;  /* immutable */
    uint32_t stock_units;        /* in stock */
    uint32_t stock_clean;        /* of them, those that have no pages */
    struct unit_group stock[STOCK_GROUPS];
    struct letter *outbox[OUTBOXES]; /* open letters, by the number of the heap they are for; or NULL */
    struct interrupt_state interrupt;
    uint32_t deferred_count;     /* frees from signal handlers that interrupted the door */
    size_t could_give;           /* what a purger might take from it if its owner slept, at the last heartbeat (purger.c) */
    size_t left_free;            /* the same by the purger, when no look could give it back */
    size_t others_give;          /* what other heaps could, of those that the owner's heartbeats have counted in this round */
    size_t others_gave;          /* and in the round before */
    const struct heap *counted;  /* from here on they have not; NULL: all */

    /* Others'. */
    struct lock lock ALIGNED(64); /* guards frozen and the redirection of *tls */
    uint32_t frozen;              /* set by a thief; the owner waits for the lock and clears it */
    uint32_t visits_seen;         /* by the purger, in its last round */
    uint64_t emptied_received;    /* COUNT_RECEIVED when that was */
    uint32_t woken;               /* how often its owner came after all when others had believed that it sleeps; WOKEN_MOST: or more */
    bool believed_asleep;         /* since it was last at its door (sleeper.c) */
    bool emptied;                 /* another thread has emptied it, and given back its holes (sleeper.c) */
    bool quarantined;             /* its owner vanished inside the door, in a fork or by a handler's hand: never used again */
    uint32_t number;              /* in order of creation; immutable, as the next: a line that is seldom written */
    struct heap *next;            /* in the list of all heaps */
    struct letter *inbox ALIGNED(64);
    struct list_node idle;        /* among idle heaps; guarded by the life lock */
    struct list *idle_in;         /* which of them; NULL: none */
    uintptr_t borrower;           /* the thread (thread_self) that has taken it from them and brings it back, or 0; guarded by the life lock */

    struct shelf shelf[SIZE_CLASSES] ALIGNED(64); /* the owner's; those of large blocks lie on a page that is not touched before */
    struct view twin ALIGNED(1 << TWIN_BIT); /* set up when the heap is first closed; neither its page nor what follows is touched before */
    void *deferred[24];           /* the blocks of these frees */
    uint16_t made_for[SIZE_CLASSES - SIZE_CLASSES_FIXED]; /* bytes of the blocks that the magazine of such a class was made for */
};

_Static_assert(SIZE_CLASSES <= 64, "`prepared` has a bit for each class");
_Static_assert(SMALL_MAX <= UINT16_MAX, "a class has larger blocks than made_for can say");

_Static_assert(offsetof(struct heap, twin) - offsetof(struct heap, view) == (size_t)1 << TWIN_BIT
                   && sizeof(struct heap) <= HEAP_ALIGN,
               "a larger heap needs a higher TWIN_BIT");

/* Bytes that its threads have requested, since its birth. */
ALWAYS_INLINE uint64_t heap_requested(const struct heap *heap)
{
    int64_t unspent = load_relaxed(&heap->view.budget) + load_relaxed(&heap->twin.budget);
    return (uint64_t)(load_relaxed(&heap->granted) - unspent);
}

/* Where the owner counts live large blocks. `heap` may be NULL: a thread that has none. */
ALWAYS_INLINE struct large_live *heap_large_live(const struct heap *heap)
{
    return heap != NULL ? large_live_of(heap->number) : NULL;
}

ALWAYS_INLINE void tally(struct heap *heap, enum heap_count which)
{
    owner_add(&heap->counts->of[which], 1u);
}

#endif
