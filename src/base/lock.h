/* A futex lock that knows its owner: nested calls from signal handlers and fork() ask whether this very
 * thread holds it. A zeroed lock is free. Taken in the order of the ranks (docs/lock-order.md), which the
 * debug build checks. */
#ifndef HAK_BASE_LOCK_H
#define HAK_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

enum lock_rank {
    LOCK_INIT = 1,
    LOCK_ORPHAN,
    LOCK_LIFE,
    LOCK_HEAP,
    LOCK_CHECK,
    LOCK_PROFILER,
    LOCK_LETTERS,
    LOCK_BIGCACHE,
    LOCK_SPAN_SHARD,
    LOCK_SPAN,
    LOCK_META,
};

struct lock {
    uintptr_t word; /* 0: free; else the holder's thread_self(), which is even, + 1 if somebody may wait */
    uint32_t rank;       /* 0 where nobody checks it; LOCK_HEAP always */
    uint32_t waits;      /* how often somebody had to wait for it; whoever has it counts */
    uint64_t taken;      /* how often it was taken */
    uint64_t waited_ns;  /* by all in sum */
};

/* Zero where ranks are not checked: locks then lie among what need not be read from the library's file. */
#define LOCK_INITIALIZER(r) {.rank = HAK_DEBUG ? (r) : 0}

/* Blocks until the lock is this thread's. Not recursive. errno is kept. */
void lock_take(struct lock *lock);

void lock_drop(struct lock *lock);

/* Does the calling thread hold the lock? Async-signal-safe. */
bool lock_is_mine(const struct lock *lock);

/* False: the calling thread holds no lock of rank LOCK_HEAP, of which there are as many as threads. Async-signal-safe. */
bool lock_may_be_of_heap(void);

/* In a fork's child, which holds none of these locks: threads that were about to take one are not there. */
void lock_after_fork(void);

/* Does any thread hold it at this moment? For who can do without. */
bool lock_is_taken(const struct lock *lock);

/* Does a thread sleep for this lock, or has one done so since it was taken? */
bool lock_is_wanted(const struct lock *lock);

/* As lock_take for a further lock of the same rank, where these have an order of their own: fork takes every heap's lock, newest
 * first. */
void lock_take_sibling(struct lock *lock);

/* A thread that holds every lock there is (fork) says so: until it takes that back, taking and dropping locks
 * does nothing in it, so that other libraries' fork handlers may allocate in between. */
void lock_pass_begin(void);
void lock_pass_end(void);
bool lock_passes(void);

/* Is that thread in the middle of what it would hold a lock for? */
bool lock_is_passed(void);

#endif
