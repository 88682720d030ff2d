/*
 * Runs a few threads of real allocator code one at a time, in every order that can make a difference.
 *
 * The code is compiled with -fsanitize=thread but linked with access.c instead of ThreadSanitizer's runtime: each
 * access to memory, plain or atomic, comes here first. An access to a word that only one thread uses goes on at
 * once; any other is a *step*, before which another thread may be chosen. Orders are enumerated by dynamic partial
 * order reduction with sleep sets (Flanagan and Godefroid): of all orders that differ only in the order of
 * independent steps, one is run.
 *
 * Which words are shared is found out on the way: when a run meets a new one, the search begins anew. It ends when
 * no order is left and no new shared word was met, so that nothing was missed.
 *
 * Memory is that of x86 (TSO): an atomic store goes to the thread's store buffer, and reaches memory in a step of its
 * own, by an *actor* of its own. Read-modify-writes, locks and plain stores wait until the buffer is empty.
 */
#ifndef HAK_TEST_SCHEDULER_H
#define HAK_TEST_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THREADS_MOST = 3, ACTORS_MOST = 2 * THREADS_MOST };

enum op_kind {
    OP_READ,
    OP_WRITE,   /* plain stores and read-modify-writes */
    OP_STORE,   /* an atomic store enters the buffer */
    OP_FLUSH,   /* the oldest one leaves it */
    OP_LOCK,
    OP_UNLOCK,
    OP_BARRIER, /* membarrier: all buffers are empty */
    OP_SLEEP,   /* futex wait, if the word is as expected */
    OP_WAKEN,   /* its end, after a wake */
    OP_WAKE,
    OP_VANISH,  /* fork, as the child sees it: the other threads are gone */
};

struct op {
    enum op_kind kind;
    uintptr_t at;
    size_t bytes;
    uint64_t value; /* OP_STORE, OP_FLUSH */
    const void *caller;
};

/* What is searched. */
struct protocol_scenario {
    const char *name; /* NULL ends a table */
    uint64_t orders;  /* that there must be, to check the search itself; 0: not known */
    int threads;
    void (*setup[THREADS_MOST])(void); /* one after another, each in its thread; NULL: none */
    void (*body[THREADS_MOST])(void);  /* at the same time */
    void (*finish[THREADS_MOST])(void); /* one after another, after the bodies */
    bool vanishes; /* a body uses OP_VANISH: each write is a step, since what is left half done is looked at */
    bool partly;   /* too many orders to try them all: as many as --runs says */
};

extern const struct protocol_scenario scenarios[];

/* Is the caller a thread whose steps are scheduled? */
bool sched_on(void);

/* The number of the calling thread. */
int sched_self(void);

/* Returns when it is this operation's turn. */
void sched_step(enum op_kind kind, const void *at, size_t bytes, uint64_t value, const void *caller);

/* Has this thread a store to this word in its buffer? The last one's value, then. */
bool sched_forward(const void *at, uint64_t *value);

/* Until the thread's next access, memory in [at, at + bytes) is as the thread sees it, its buffer included: for plain
 * reads, which the code makes itself. */
void sched_peek(const void *at, size_t bytes);
void sched_unpeek(void);

/* Are stores to this word buffered: is it shared? */
bool sched_is_shared(const void *at, size_t bytes);

/* What must not happen has: prints the order of steps that led to it, and ends the process. */
_Noreturn void sched_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The address of a thread's TLS word. */
void *sched_tls_word(int thread);

#endif
