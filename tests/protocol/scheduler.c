#include "scheduler.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap/view.h"
#include "invariants.h"
#include "world.h"

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
    int write;     /* node of the last write; -1: none */
    int read[ACTORS_MOST]; /* nodes of reads since then */
    int lock;      /* node of the last OP_LOCK */
    struct clock write_clock;
    struct clock read_clock;
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
    int accesses;   /* in this run, to any memory */
    struct op hidden[BUFFER]; /* what memory holds under a peek */
    unsigned hidden_count;
    uint64_t runs;
    uint64_t repeats;
    uint64_t steps;
    int longest;
    int shared;
};

static struct scheduler *s;
static _Thread_local int self = MAIN;

bool sched_on(void)
{
    return self != MAIN && s->on && !s->abandon;
}

int sched_self(void)
{
    return self;
}

void *sched_tls_word(int thread)
{
    return s->worker[thread].tls_word;
}

/* ---- Words. */

static struct word *word_at(uintptr_t key)
{
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 48);
    while (s->word[i].key != key && s->word[i].key != 0)
        i = (i + 1) % WORDS;
    struct word *word = &s->word[i];
    word->key = key;
    if (word->run != s->run) {
        word->run = s->run;
        word->locked = false;
        word->write = word->lock = -1;
        for (int actor = 0; actor < ACTORS_MOST; actor++)
            word->read[actor] = -1;
        memset(&word->write_clock, 0, sizeof word->write_clock);
        memset(&word->read_clock, 0, sizeof word->read_clock);
    }
    return word;
}

static uintptr_t first_key(const struct op *op)
{
    return op->at / 8;
}

static uintptr_t last_key(const struct op *op)
{
    return (op->at + op->bytes - 1) / 8;
}

static bool reads(enum op_kind kind)
{
    return kind == OP_READ || kind == OP_WAKEN;
}

/* Does the step touch memory that others see? */
static bool is_memory(enum op_kind kind)
{
    return kind != OP_STORE && kind != OP_BARRIER && kind != OP_VANISH;
}

/* Notes who uses the words; true if one of them is shared. */
static bool note_use(const struct op *op)
{
    bool shared = false;
    for (uintptr_t key = first_key(op); key <= last_key(op); key++) {
        struct word *word = word_at(key);
        if (reads(op->kind))
            word->readers |= (uint8_t)(1u << self);
        else
            word->writers |= (uint8_t)(1u << self);
        if (!word->shared && word->writers != 0 && ((word->readers | word->writers) & ((word->readers | word->writers) - 1)) != 0) {
            word->shared = true;
            s->grew = true;
            s->shared++;
        }
        shared |= word->shared || (s->scenario->vanishes && !reads(op->kind));
    }
    return shared;
}

bool sched_is_shared(const void *at, size_t bytes)
{
    sched_unpeek();
    return note_use(&(struct op){.kind = OP_WRITE, .at = (uintptr_t)at, .bytes = bytes});
}

/* ---- Dependence. */

static bool dependent(int a, const struct op *x, int b, const struct op *y)
{
    if (a == b || x->kind == OP_VANISH || y->kind == OP_VANISH)
        return true;
    if (x->kind == OP_BARRIER || y->kind == OP_BARRIER) {
        enum op_kind other = x->kind == OP_BARRIER ? y->kind : x->kind;
        return other == OP_STORE || other == OP_FLUSH;
    }
    if (!is_memory(x->kind) || !is_memory(y->kind) || (reads(x->kind) && reads(y->kind)))
        return false;
    return first_key(x) <= last_key(y) && first_key(y) <= last_key(x);
}

static void join(struct clock *clock, const struct clock *other)
{
    for (int i = 0; i < ACTORS_MOST; i++)
        if (clock->of[i] < other->of[i])
            clock->of[i] = other->of[i];
}

/* Somewhere before node `at` and the step chosen there, actor `p` should have come first. */
static void add_backtrack(int at, int p, const struct clock *before)
{
    struct node *node = &s->node[at];
    if ((node->enabled >> p & 1) != 0) {
        node->backtrack |= 1u << p;
        return;
    }
    uint32_t candidates = 0;
    for (int j = at + 1; j < s->depth; j++) {
        int q = s->node[j].chosen;
        if ((node->enabled >> q & 1) != 0 && s->node[j].index <= before->of[q])
            candidates |= 1u << q;
    }
    if ((candidates & node->backtrack) != 0)
        return;
    node->backtrack |= candidates != 0 ? candidates & -candidates : node->enabled;
}

/* If the step at node `at` and the next one of actor p are in a race, the other order is to be tried. */
static void race(int at, int p, const struct clock *before)
{
    if (at < 0)
        return;
    const struct node *node = &s->node[at];
    if (node->chosen != p && node->index > before->of[node->chosen])
        add_backtrack(at, p, before);
}

static void find_races(int p, const struct op *op)
{
    const struct clock *before = &s->actor[p].clock;
    if (op->kind == OP_STORE && s->barriers == 0)
        return;
    if (op->kind == OP_VANISH || op->kind == OP_BARRIER || op->kind == OP_STORE) {
        /* The last step of each actor that depends on it. */
        for (int q = 0; q < ACTORS_MOST; q++) {
            for (int at = s->depth; q != p && at-- > 0;) {
                if (s->node[at].chosen == q && dependent(q, &s->node[at].op, p, op)) {
                    race(at, p, before);
                    break;
                }
            }
        }
        return;
    }
    for (uintptr_t key = first_key(op); key <= last_key(op); key++) {
        const struct word *word = word_at(key);
        if (op->kind == OP_LOCK) {
            race(word->lock, p, before); /* with its unlock there is none: only one of them can come next */
            continue;
        }
        race(word->write, p, before);
        for (int q = 0; !reads(op->kind) && q < ACTORS_MOST; q++)
            race(word->read[q], p, before);
    }
}

/* ---- Steps. */

static int buffer_of(int thread)
{
    return THREADS_MOST + thread;
}

static bool needs_empty_buffer(enum op_kind kind)
{
    return kind != OP_READ && kind != OP_STORE && kind != OP_FLUSH && kind != OP_WAKEN;
}

static bool is_enabled(int a)
{
    const struct actor *actor = &s->actor[a];
    if (a >= THREADS_MOST)
        return !actor->finished && s->actor[a - THREADS_MOST].buffered > 0;
    if (a >= s->scenario->threads || actor->finished)
        return false;
    switch (actor->op.kind) {
    case OP_STORE:
        return actor->buffered < BUFFER;
    case OP_LOCK:
        return actor->buffered == 0 && !word_at(first_key(&actor->op))->locked;
    case OP_BARRIER:
        for (int t = 0; t < s->scenario->threads; t++)
            if (s->actor[t].buffered > 0)
                return false;
        return true;
    case OP_WAKEN:
        return !actor->asleep;
    default:
        return actor->buffered == 0 || !needs_empty_buffer(actor->op.kind);
    }
}

static const struct op *next_op(int a)
{
    return a >= THREADS_MOST ? &s->actor[a - THREADS_MOST].buffer[0].op : &s->actor[a].op;
}

/* The clocks after a step that touches memory. */
static void touch_memory(int a, const struct op *op)
{
    struct actor *actor = &s->actor[a];
    for (uintptr_t key = first_key(op); key <= last_key(op); key++) {
        const struct word *word = word_at(key);
        join(&actor->clock, &word->write_clock);
        if (!reads(op->kind))
            join(&actor->clock, &word->read_clock);
    }
    for (uintptr_t key = first_key(op); key <= last_key(op); key++) {
        struct word *word = word_at(key);
        if (reads(op->kind)) {
            word->read[a] = s->depth;
            join(&word->read_clock, &actor->clock);
            continue;
        }
        word->write = s->depth;
        word->write_clock = actor->clock;
        for (int q = 0; q < ACTORS_MOST; q++)
            word->read[q] = -1;
    }
}

/* Their buffers reach memory. Had they not, memory would be as if the thread had vanished before these stores, which is
 * another order. */
static void vanish_others(int a)
{
    for (int t = 0; t < s->scenario->threads; t++) {
        if (t == a)
            continue;
        if (!s->actor[t].finished)
            find_races(t, &s->actor[t].op);
        s->actor[t].finished = true;
        for (unsigned i = 0; i < s->actor[t].buffered; i++)
            memcpy((void *)s->actor[t].buffer[i].op.at, &s->actor[t].buffer[i].op.value, s->actor[t].buffer[i].op.bytes);
        s->actor[t].buffered = 0;
        join(&s->actor[a].clock, &s->actor[t].clock);
        join(&s->actor[a].clock, &s->actor[buffer_of(t)].clock);
    }
}

static void wake_one(const struct op *op)
{
    for (int t = 0; t < s->scenario->threads; t++) {
        struct actor *actor = &s->actor[t];
        if (actor->asleep && actor->op.kind == OP_WAKEN && actor->op.at == op->at) {
            actor->asleep = false;
            return;
        }
    }
}

/* Takes the step of actor a: what it means to the scheduler. The access itself is its thread's. */
static void take_step(int a)
{
    struct actor *actor = &s->actor[a];
    struct op op = *next_op(a);
    struct node *node = &s->node[s->depth];
    node->op = op;
    if (a >= THREADS_MOST)
        join(&actor->clock, &s->actor[a - THREADS_MOST].buffer[0].clock);
    else if (needs_empty_buffer(op.kind))
        join(&actor->clock, &s->actor[buffer_of(a)].clock);
    if (s->depth + 1 >= s->known) /* in a replay they have been found */
        find_races(a, &op);
    if (op.kind == OP_BARRIER)
        for (int t = 0; t < s->scenario->threads; t++)
            join(&actor->clock, &s->actor[buffer_of(t)].clock);
    node->index = ++actor->clock.of[a];
    if (is_memory(op.kind))
        touch_memory(a, &op);
    switch (op.kind) {
    case OP_STORE:
        actor->buffer[actor->buffered++] = (struct buffered){.op = op, .clock = actor->clock};
        actor->buffer[actor->buffered - 1].op.kind = OP_FLUSH;
        break;
    case OP_FLUSH: {
        struct actor *thread = &s->actor[a - THREADS_MOST];
        memcpy((void *)op.at, &op.value, op.bytes);
        thread->buffered--;
        memmove(thread->buffer, thread->buffer + 1, thread->buffered * sizeof thread->buffer[0]);
        break;
    }
    case OP_LOCK:
        word_at(first_key(&op))->locked = true;
        word_at(first_key(&op))->lock = s->depth;
        break;
    case OP_UNLOCK:
        word_at(first_key(&op))->locked = false;
        break;
    case OP_WAKE:
        wake_one(&op);
        break;
    case OP_BARRIER:
        s->barriers++;
        break;
    case OP_VANISH:
        node->backtrack |= node->enabled;
        vanish_others(a);
        break;
    default:
        break;
    }
    s->depth++;
    s->steps++;
}

/* ---- Choosing. */

/* Of those that were tried in the node before, who is still independent of what was chosen there. */
static uint32_t sleep_after(const struct node *before)
{
    uint32_t sleep = 0;
    uint32_t candidates = (before->sleep | before->done) & ~(1u << before->chosen);
    for (int a = 0; a < ACTORS_MOST; a++)
        if ((candidates >> a & 1) != 0 && is_enabled(a) && !dependent(a, next_op(a), before->chosen, &before->op))
            sleep |= 1u << a;
    return sleep;
}

static int prefer(uint32_t choices)
{
    if (s->current != MAIN && (choices >> s->current & 1) != 0)
        return s->current;
    if (s->current != MAIN && !s->actor[s->current].finished && (choices >> buffer_of(s->current) & 1) != 0)
        return buffer_of(s->current);
    return __builtin_ctz(choices);
}

static bool all_finished(void)
{
    for (int t = 0; t < s->scenario->threads; t++)
        if (!s->actor[t].finished)
            return false;
    return true;
}

static void describe_blocked(void)
{
    for (int t = 0; t < s->scenario->threads; t++)
        if (!s->actor[t].finished)
            fprintf(stderr, "  thread %d waits (operation %d at %#" PRIxPTR ")\n", t, (int)s->actor[t].op.kind, s->actor[t].op.at);
}

/* The actor whose step is next; MAIN: the run is over. */
static int choose(void)
{
    uint32_t enabled = 0;
    for (int a = 0; a < ACTORS_MOST; a++)
        enabled |= (uint32_t)is_enabled(a) << a;
    if (enabled == 0) {
        if (!all_finished()) {
            describe_blocked();
            sched_violation("deadlock");
        }
        return MAIN;
    }
    if (s->depth == NODES_MOST)
        sched_violation("a run has more than %d steps", NODES_MOST);
    struct node *node = &s->node[s->depth];
    if (s->depth < s->known) {
        if (node->enabled != enabled)
            sched_violation("replay: other actors are enabled (%x, were %x) at step %d", enabled, node->enabled, s->depth);
        return node->chosen;
    }
    uint32_t sleep = s->depth > 0 ? sleep_after(&s->node[s->depth - 1]) : 0;
    uint32_t choices = enabled & ~sleep;
    if (choices == 0)
        return ACTORS_MOST;
    *node = (struct node){.enabled = enabled, .sleep = sleep, .chosen = prefer(choices)};
    node->backtrack = 1u << node->chosen;
    node->done = 1u << node->chosen;
    s->known = s->depth + 1;
    return node->chosen;
}

static void hand_over(int thread)
{
    s->current = thread;
    sem_post(thread == MAIN ? &s->main : &s->worker[thread].go);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

/* Takes steps of buffers; then hands over to the thread whose step is next, if that is not the caller. */
static void go_on(void)
{
    int from = self;
    bool done = s->actor[from].finished;
    for (;;) {
        int a = choose();
        if (a == MAIN || a == ACTORS_MOST) {
            s->repeats += a == ACTORS_MOST;
            s->abandon = a == ACTORS_MOST;
            s->on = false;
            hand_over(MAIN);
            break;
        }
        take_step(a);
        if (a >= THREADS_MOST)
            continue;
        if (a == from) {
            s->current = a;
            return;
        }
        hand_over(a);
        break;
    }
    if (done)
        return;
    wait_for(&s->worker[from].go);
    if (s->abandon || s->actor[from].finished)
        longjmp(s->worker[from].base, 1);
}

void sched_step(enum op_kind kind, const void *at, size_t bytes, uint64_t value, const void *caller)
{
    struct op op = {.kind = kind, .at = (uintptr_t)at, .bytes = bytes, .value = value, .caller = caller};
    if (!sched_on())
        return;
    sched_unpeek();
    if (++s->accesses > ACCESSES_MOST)
        sched_violation("a run does not end");
    if (is_memory(kind) && !note_use(&op) && kind != OP_LOCK && kind != OP_UNLOCK && kind != OP_SLEEP &&
        kind != OP_WAKE && kind != OP_WAKEN)
        return;
    s->actor[self].op = op;
    s->actor[self].asleep = kind == OP_WAKEN;
    if (s->prologue) {
        hand_over(MAIN);
        wait_for(&s->worker[self].go);
        if (s->abandon || s->actor[self].finished)
            longjmp(s->worker[self].base, 1);
        return;
    }
    go_on();
}

bool sched_forward(const void *at, uint64_t *value)
{
    const struct actor *actor = &s->actor[self];
    for (unsigned i = actor->buffered; i-- > 0;) {
        if (actor->buffer[i].op.at == (uintptr_t)at) {
            *value = actor->buffer[i].op.value;
            return true;
        }
    }
    return false;
}

/* The one peek there may be: the present thread's. */
void sched_peek(const void *at, size_t bytes)
{
    if (!sched_on())
        return;
    const struct actor *actor = &s->actor[self];
    for (unsigned i = 0; i < actor->buffered; i++) {
        const struct op *op = &actor->buffer[i].op;
        if (op->at + op->bytes <= (uintptr_t)at || (uintptr_t)at + bytes <= op->at)
            continue;
        struct op *hidden = &s->hidden[s->hidden_count++];
        *hidden = *op;
        memcpy(&hidden->value, (void *)op->at, op->bytes);
        memcpy((void *)op->at, &op->value, op->bytes);
    }
}

void sched_unpeek(void)
{
    while (s->hidden_count > 0) {
        const struct op *hidden = &s->hidden[--s->hidden_count];
        memcpy((void *)hidden->at, &hidden->value, hidden->bytes);
    }
}

/* ---- Runs. */

static void *work(void *argument)
{
    self = (int)(intptr_t)argument;
    struct worker *worker = &s->worker[self];
    worker->tls_word = &thread_view;
    sem_post(&s->main);
    for (;;) {
        wait_for(&worker->go);
        if (setjmp(worker->base) != 0)  {
            sem_post(&s->main); /* gone back to the start */
            continue;
        }
        worker->job();
        if (!s->on) {
            sem_post(&s->main);
            continue;
        }
        sched_unpeek();
        s->actor[self].finished = true;
        s->actor[self].op = (struct op){.kind = OP_WRITE};
        if (s->prologue)
            hand_over(MAIN);
        else
            go_on();
    }
    return NULL;
}

static void run_job(int thread, void (*job)(void))
{
    if (job == NULL)
        return;
    s->worker[thread].job = job;
    sem_post(&s->worker[thread].go);
    wait_for(&s->main);
}

/* One order of steps: the known ones, then what prefer() likes. */
static void run_once(void)
{
    const struct protocol_scenario *scenario = s->scenario;
    world_restore();
    s->run++;
    s->depth = 0;
    s->barriers = 0;
    s->accesses = 0;
    s->abandon = false;
    s->current = MAIN;
    memset(s->actor, 0, sizeof s->actor);
    s->on = s->prologue = true;
    for (int t = 0; t < scenario->threads; t++) {
        s->worker[t].job = scenario->body[t];
        s->current = t;
        sem_post(&s->worker[t].go);
        wait_for(&s->main);
    }
    s->prologue = false;
    s->current = MAIN;
    /* The first choice is made here; main has no step of its own. */
    int a = choose();
    if (a != MAIN) {
        take_step(a);
        hand_over(a);
        wait_for(&s->main);
    }
    s->on = false;
    bool complete = !s->abandon;
    for (int t = 0; t < scenario->threads; t++) {
        const struct actor *actor = &s->actor[t];
        if (actor->finished && actor->op.at == 0)
            continue;
        s->abandon = true;
        sem_post(&s->worker[t].go);
        wait_for(&s->main);
    }
    s->abandon = false;
    s->runs++;
    if (s->depth > s->longest)
        s->longest = s->depth;
    if (!complete)
        return;
    for (int t = 0; t < scenario->threads; t++)
        run_job(t, scenario->finish[t]);
    invariants_check();
}

/* Goes back to the last node with something left to try. False: there is none. */
static bool next_order(void)
{
    for (int at = s->known; at-- > 0;) {
        struct node *node = &s->node[at];
        uint32_t left = node->backtrack & node->enabled & ~node->done & ~node->sleep;
        if (left == 0)
            continue;
        node->chosen = __builtin_ctz(left);
        node->done |= 1u << node->chosen;
        s->known = at + 1;
        return true;
    }
    return false;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Everything, or as much as `runs_most` runs. */
static bool search(uint64_t runs_most)
{
    for (;;) {
        s->grew = false;
        s->known = 0;
        s->runs = s->repeats = s->steps = 0;
        s->longest = 0;
        bool more = true;
        while (more && !s->grew) {
            run_once();
            if (runs_most > 0 && s->runs >= runs_most)
                return false;
            more = next_order();
        }
        if (!s->grew)
            return true;
    }
}

/* In a process of its own: scenarios start from a fresh allocator. */
static void run_scenario(const struct protocol_scenario *scenario, uint64_t runs_most)
{
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    s->scenario = scenario;
    sem_init(&s->main, 0, 0);
    double start = now();
    for (int t = 0; t < scenario->threads; t++) {
        sem_init(&s->worker[t].go, 0, 0);
        pthread_create(&s->worker[t].thread, NULL, work, (void *)(intptr_t)t);
        wait_for(&s->main);
    }
    for (int t = 0; t < scenario->threads; t++)
        run_job(t, scenario->setup[t]);
    invariants_check();
    world_save();
    bool all = search(runs_most);
    printf("%-28s %d threads  %9" PRIu64 " orders  %7" PRIu64 " repeats  %11" PRIu64 " steps  longest %4d  %4d shared words  %6.1f s  %s\n",
           scenario->name, scenario->threads, s->runs - s->repeats, s->repeats, s->steps, s->longest, s->shared,
           now() - start, all ? "exhausted" : "NOT exhausted");
    fflush(stdout);
    if (all && scenario->orders > 0 && scenario->orders != s->runs - s->repeats) {
        fprintf(stderr, "%s: there are %" PRIu64 " orders\n", scenario->name, scenario->orders);
        _exit(4);
    }
    _exit(all || s->scenario->partly ? 0 : 3);
}

/* ---- What a violation looks like. */

static const char *const kind_names[] = {
    [OP_READ] = "reads", [OP_WRITE] = "writes", [OP_STORE] = "stores, buffered", [OP_FLUSH] = "store reaches memory",
    [OP_LOCK] = "locks", [OP_UNLOCK] = "unlocks", [OP_BARRIER] = "membarrier", [OP_SLEEP] = "futex wait",
    [OP_WAKEN] = "wakes up", [OP_WAKE] = "futex wake", [OP_VANISH] = "fork: others vanish",
};

static void print_steps(void)
{
    extern char __executable_start[];
    FILE *names = NULL;
    char command[128];
    char path[] = "/tmp/protocol-steps-XXXXXX";
    int file = mkstemp(path);
    snprintf(command, sizeof command, "addr2line -f -s -e /proc/%d/exe > %s", (int)getpid(), path);
    names = popen(command, "w");
    for (int i = 0; names != NULL && i < s->depth; i++)
        fprintf(names, "%#" PRIxPTR "\n", (uintptr_t)s->node[i].op.caller - 1 - (uintptr_t)__executable_start);
    if (names != NULL)
        pclose(names);
    names = file >= 0 ? fdopen(file, "r") : NULL;
    for (int i = 0; i < s->depth; i++) {
        const struct node *node = &s->node[i];
        char function[128] = "?\n";
        char line[128] = "?\n";
        if (names != NULL && (fgets(function, sizeof function, names) == NULL || fgets(line, sizeof line, names) == NULL))
            strcpy(line, "?\n");
        function[strcspn(function, "\n")] = '\0';
        line[strcspn(line, "\n ")] = '\0';
        fprintf(stderr, "%5d  thread %d%-9s %-21s %#14" PRIxPTR "  %s (%s)\n", i,
                node->chosen % THREADS_MOST, node->chosen >= THREADS_MOST ? "'s buffer" : "",
                kind_names[node->op.kind], node->op.at, function, line);
    }
    if (names != NULL)
        fclose(names);
    unlink(path);
}

void sched_violation(const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->on = false;
    print_steps();
    fprintf(stderr, "%s: violation in order %" PRIu64 ": %s\n", s->scenario->name, s->runs + 1, text);
    printf("%-28s violation: %s\n", s->scenario->name, text);
    fflush(stdout);
    _exit(2);
}

/* ---- The command line: [--runs N] [--broken] [name ...] */

int main(int argc, char **argv)
{
    uint64_t runs_most = 0;
    bool broken = false;
    int failures = 0;
    int ran = 0;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--broken") == 0)
            broken = true;
        else if (strcmp(argv[at], "--runs") == 0 && at + 1 < argc)
            runs_most = strtoull(argv[++at], NULL, 10);
        else
            return 64;
    }
    for (const struct protocol_scenario *scenario = scenarios; scenario->name != NULL; scenario++) {
        bool wanted = at == argc;
        for (int i = at; i < argc; i++)
            wanted |= strcmp(argv[i], scenario->name) == 0;
        if (!wanted)
            continue;
        ran++;
        pid_t child = fork();
        if (child == 0)
            run_scenario(scenario, runs_most);
        int status = 0;
        waitpid(child, &status, 0);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (code != (broken ? 2 : 0)) {
            fprintf(stderr, "%s: ended with %d\n", scenario->name, code);
            failures++;
        }
    }
    return ran == 0 || failures > 0;
}
