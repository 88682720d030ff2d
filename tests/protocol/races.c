#include <string.h>

#include "search.h"

struct word *word_at(uintptr_t key)
{
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 48);
    while (state->word[i].key != key && state->word[i].key != 0)
        i = (i + 1) % WORDS;
    struct word *word = &state->word[i];
    word->key = key;
    if (word->run != state->run) {
        word->run = state->run;
        word->locked = false;
        word->lock = -1;
        for (int actor = 0; actor < ACTORS_MOST; actor++)
            word->write[actor] = -1;
        for (int thread = 0; thread < THREADS_MOST; thread++)
            word->read[thread] = -1;
        memset(word->write_clock, 0, sizeof word->write_clock);
        memset(word->read_clock, 0, sizeof word->read_clock);
    }
    return word;
}

bool note_use(const struct op *op)
{
    bool shared = false;
    for (uintptr_t key = first_key(op); key <= last_key(op); key++) {
        struct word *word = word_at(key);
        if (op_reads(op->kind))
            word->readers |= (uint8_t)(1u << self);
        else
            word->writers |= (uint8_t)(1u << self);
        if (!word->shared && word->writers != 0 && ((word->readers | word->writers) & ((word->readers | word->writers) - 1)) != 0) {
            word->shared = true;
            state->grew = true;
            state->shared++;
        }
        shared |= word->shared || (state->scenario->vanishes && !op_reads(op->kind));
    }
    return shared;
}

bool sched_is_shared(const void *at, size_t bytes)
{
    sched_unpeek();
    return note_use(&(struct op){.kind = OP_WRITE, .at = (uintptr_t)at, .bytes = bytes});
}

bool dependent(int a, const struct op *x, int b, const struct op *y)
{
    if (a == b || x->kind == OP_VANISH || y->kind == OP_VANISH)
        return true;
    if (x->kind == OP_BARRIER || y->kind == OP_BARRIER) {
        enum op_kind other = x->kind == OP_BARRIER ? y->kind : x->kind;
        return other == OP_STORE || other == OP_FLUSH;
    }
    if (!op_is_memory(x->kind) || !op_is_memory(y->kind) || (op_reads(x->kind) && op_reads(y->kind)))
        return false;
    if ((op_reads(x->kind) && is_own_buffer(a, b)) || (op_reads(y->kind) && is_own_buffer(b, a)))
        return false;
    return first_key(x) <= last_key(y) && first_key(y) <= last_key(x);
}

/* Somewhere before node `at` and the step chosen there, actor `p` should have come first. */
static void add_backtrack(int at, int p, const struct clock *before)
{
    struct node *node = &state->node[at];
    if ((node->enabled >> p & 1) != 0) {
        node->backtrack |= 1u << p;
        return;
    }
    uint32_t candidates = 0;
    for (int j = at + 1; j < state->depth; j++) {
        int q = state->node[j].chosen;
        if ((node->enabled >> q & 1) != 0 && state->node[j].index <= before->of[q])
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
    const struct node *node = &state->node[at];
    if (node->chosen != p && node->index > before->of[node->chosen])
        add_backtrack(at, p, before);
}

static int last_write(const struct word *word, int p, const struct op *op)
{
    int last = -1;
    for (int q = 0; q < ACTORS_MOST; q++)
        if (word->write[q] > last && !(op_reads(op->kind) && is_own_buffer(p, q)))
            last = word->write[q];
    return last;
}

/* Of each actor, the last step that is in some order with one of this kind (dependent). */
static const int *latest_dependent(enum op_kind kind)
{
    if (kind == OP_VANISH)
        return state->latest.any;
    return kind == OP_STORE ? state->latest.barrier : state->latest.buffered;
}

void find_races(int p, const struct op *op)
{
    const struct clock *before = &state->actor[p].clock;
    if (op->kind == OP_STORE && state->barriers == 0)
        return;
    if (op->kind == OP_VANISH || op->kind == OP_BARRIER || op->kind == OP_STORE) {
        const int *latest = latest_dependent(op->kind);
        for (int q = 0; q < ACTORS_MOST; q++)
            if (q != p)
                race(latest[q], p, before);
        return;
    }
    for (uintptr_t key = first_key(op); key <= last_key(op); key++) {
        const struct word *word = word_at(key);
        if (op->kind == OP_LOCK) {
            race(word->lock, p, before); /* with its unlock there is none: only one of them can come next */
            continue;
        }
        race(last_write(word, p, op), p, before);
        for (int q = 0; !op_reads(op->kind) && q < THREADS_MOST; q++)
            if (!is_own_buffer(q, p))
                race(word->read[q], p, before);
    }
}
