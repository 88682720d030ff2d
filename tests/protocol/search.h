/* The search: its state, and what its files need of each other (scheduler.h is for everybody else). */
#ifndef HAK_TEST_SEARCH_H
#define HAK_TEST_SEARCH_H

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler.h"

enum { NODES_MOST = 1 << 15, WORDS = 1 << 16, BUFFER = 8, MAIN = -1, ACCESSES_MOST = 1000000 };

/* A vector clock: how many steps of each actor come before. */
struct clock {
    uint32_t of[ACTORS_MOST];
};

struct buffered {
    struct op op;
    struct clock clock;
};

struct actor {
    struct op op;   /* the next step; of a buffer: made when asked for */
    bool finished;  /* or vanished */
    bool asleep;
    struct clock clock;
    struct buffered buffer[BUFFER];
    unsigned buffered;
};

/* A state in which somebody was chosen. */
struct node {
    uint32_t enabled;
    uint32_t backtrack;
    uint32_t done;
    uint32_t sleep;
    int chosen;
    uint32_t index; /* of the step among its actor's */
    struct op op;
};

/* Of one word of 8 bytes. */
struct word {
    uintptr_t key; /* address / 8; 0: free */
    uint8_t readers;
    uint8_t writers;
    bool shared;
    bool locked;
    uint32_t run;  /* what follows is of this run */
    int write[ACTORS_MOST];  /* node of each actor's last write; -1: none */
    int read[THREADS_MOST];  /* of each thread's last read since the last write of another; or -1 */
    int lock;                /* node of the last OP_LOCK */
    struct clock write_clock[ACTORS_MOST];
    struct clock read_clock[THREADS_MOST];
};

/* Nodes of each actor's last steps of these kinds in this run; -1: none. A fork is one of each. */
struct latest {
    int any[ACTORS_MOST];
    int buffered[ACTORS_MOST]; /* OP_STORE, OP_FLUSH */
    int barrier[ACTORS_MOST];
};

struct worker {
    pthread_t thread;
    sem_t go;
    void (*job)(void);
    jmp_buf base;
    void *tls_word;
};

/* All of the scheduler's state, outside of what is put back between runs. */
struct scheduler {
    const struct protocol_scenario *scenario;
    struct actor actor[ACTORS_MOST];
    struct node node[NODES_MOST];
    struct word word[WORDS];
    struct worker worker[THREADS_MOST];
    sem_t main;
    int depth;      /* nodes of the present run so far */
    int known;      /* of these have been visited before: replay */
    int current;    /* the thread that runs, MAIN: none */
    uint32_t run;
    bool on;
    bool prologue;  /* threads run to their first step */
    bool abandon;   /* the run repeats what another one shows */
    bool grew;      /* a word became shared */
    int barriers;   /* in this run */
    struct latest latest;
    int accesses;   /* in this run, to any memory */
    struct op hidden[BUFFER]; /* what memory holds under a peek */
    unsigned hidden_count;
    uint64_t runs;
    uint64_t repeats;
    uint64_t steps;
    int longest;
    int shared;
};

extern struct scheduler *state;
extern _Thread_local int self; /* the calling thread's number; MAIN: none */

/* races.c: words, and which orders of steps can make a difference. */

struct word *word_at(uintptr_t key);

static inline uintptr_t first_key(const struct op *op)
{
    return op->at / 8;
}

static inline uintptr_t last_key(const struct op *op)
{
    return (op->at + op->bytes - 1) / 8;
}

static inline bool op_reads(enum op_kind kind)
{
    return kind == OP_READ || kind == OP_WAKEN;
}

/* Does the step touch memory that others see? */
static inline bool op_is_memory(enum op_kind kind)
{
    return kind != OP_STORE && kind != OP_BARRIER && kind != OP_VANISH;
}

/* Notes who uses the words; true if one of them is shared. */
bool note_use(const struct op *op);

/* The actor that is the thread's store buffer. */
static inline int buffer_of(int thread)
{
    return THREADS_MOST + thread;
}

/* A thread sees its own store in the buffer or in memory: its reads and its buffer's steps are in no order. */
static inline bool is_own_buffer(int reader, int writer)
{
    return writer == buffer_of(reader);
}

bool dependent(int a, const struct op *x, int b, const struct op *y);

static inline void clock_join(struct clock *clock, const struct clock *other)
{
    for (int i = 0; i < ACTORS_MOST; i++)
        if (clock->of[i] < other->of[i])
            clock->of[i] = other->of[i];
}

/* Which steps of this run should also be tried the other way round with the next one of actor p? */
void find_races(int p, const struct op *op);

/* steps.c: what the next step of an actor means. */

bool needs_empty_buffer(enum op_kind kind);
bool is_enabled(int a);
const struct op *next_op(int a);

/* Takes the step of actor a: what it means to the scheduler. The access itself is its thread's. */
void take_step(int a);

/* choice.c: whose step is next. */

/* The actor whose step is next; MAIN: the run is over; ACTORS_MOST: it repeats what another one shows. */
int choose(void);
void hand_over(int thread);
void wait_for(sem_t *semaphore);

/* Takes steps of buffers; then hands over to the thread whose step is next, if that is not the caller. */
void go_on(void);

#endif
