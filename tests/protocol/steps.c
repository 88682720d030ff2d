#include <string.h>

#include "search.h"

bool needs_empty_buffer(enum op_kind kind)
{
    return kind != OP_READ && kind != OP_STORE && kind != OP_FLUSH && kind != OP_WAKEN;
}

bool is_enabled(int a)
{
    const struct actor *actor = &state->actor[a];
    if (a >= THREADS_MOST)
        return !actor->finished && state->actor[a - THREADS_MOST].buffered > 0;
    if (a >= state->scenario->threads || actor->finished)
        return false;
    switch (actor->op.kind) {
    case OP_STORE:
        return actor->buffered < BUFFER;
    case OP_LOCK:
        return actor->buffered == 0 && !word_at(first_key(&actor->op))->locked;
    case OP_BARRIER:
        for (int t = 0; t < state->scenario->threads; t++)
            if (state->actor[t].buffered > 0)
                return false;
        return true;
    case OP_WAKEN:
        return !actor->asleep;
    default:
        return actor->buffered == 0 || !needs_empty_buffer(actor->op.kind);
    }
}

const struct op *next_op(int a)
{
    return a >= THREADS_MOST ? &state->actor[a - THREADS_MOST].buffer[0].op : &state->actor[a].op;
}

/* What comes before a step that touches this word. */
static void join_word(int a, const struct op *op, const struct word *word)
{
    struct clock *clock = &state->actor[a].clock;
    for (int q = 0; q < ACTORS_MOST; q++)
        if (!(op_reads(op->kind) && is_own_buffer(a, q)))
            clock_join(clock, &word->write_clock[q]);
    for (int q = 0; !op_reads(op->kind) && q < THREADS_MOST; q++)
        if (!is_own_buffer(q, a))
            clock_join(clock, &word->read_clock[q]);
}

/* The clocks after a step that touches memory. */
static void touch_memory(int a, const struct op *op)
{
    const struct clock *clock = &state->actor[a].clock;
    for (uintptr_t key = first_key(op); key <= last_key(op); key++)
        join_word(a, op, word_at(key));
    for (uintptr_t key = first_key(op); key <= last_key(op); key++) {
        struct word *word = word_at(key);
        if (op_reads(op->kind)) {
            word->read[a] = state->depth;
            word->read_clock[a] = *clock;
            continue;
        }
        word->write[a] = state->depth;
        word->write_clock[a] = *clock;
        for (int q = 0; q < THREADS_MOST; q++)
            if (!is_own_buffer(q, a))
                word->read[q] = -1;
    }
}

/* Their buffers reach memory. Had they not, memory would be as if the thread had vanished before these stores, which is
 * another order. */
static void vanish_others(int a)
{
    for (int t = 0; t < state->scenario->threads; t++) {
        if (t == a)
            continue;
        if (!state->actor[t].finished)
            find_races(t, &state->actor[t].op);
        state->actor[t].finished = true;
        for (unsigned i = 0; i < state->actor[t].buffered; i++)
            memcpy((void *)state->actor[t].buffer[i].op.at, &state->actor[t].buffer[i].op.value, state->actor[t].buffer[i].op.bytes);
        state->actor[t].buffered = 0;
        clock_join(&state->actor[a].clock, &state->actor[t].clock);
        clock_join(&state->actor[a].clock, &state->actor[buffer_of(t)].clock);
    }
}

static void wake_one(const struct op *op)
{
    for (int t = 0; t < state->scenario->threads; t++) {
        struct actor *actor = &state->actor[t];
        if (actor->asleep && actor->op.kind == OP_WAKEN && actor->op.at == op->at) {
            actor->asleep = false;
            return;
        }
    }
}

static void note_latest(int a, enum op_kind kind)
{
    state->latest.any[a] = state->depth;
    if (kind == OP_STORE || kind == OP_FLUSH || kind == OP_VANISH)
        state->latest.buffered[a] = state->depth;
    if (kind == OP_BARRIER || kind == OP_VANISH)
        state->latest.barrier[a] = state->depth;
}

void take_step(int a)
{
    struct actor *actor = &state->actor[a];
    struct op op = *next_op(a);
    struct node *node = &state->node[state->depth];
    node->op = op;
    if (a >= THREADS_MOST)
        clock_join(&actor->clock, &state->actor[a - THREADS_MOST].buffer[0].clock);
    else if (needs_empty_buffer(op.kind))
        clock_join(&actor->clock, &state->actor[buffer_of(a)].clock);
    if (state->depth + 1 >= state->known) /* in a replay they have been found */
        find_races(a, &op);
    if (op.kind == OP_BARRIER)
        for (int t = 0; t < state->scenario->threads; t++)
            clock_join(&actor->clock, &state->actor[buffer_of(t)].clock);
    node->index = ++actor->clock.of[a];
    if (op_is_memory(op.kind))
        touch_memory(a, &op);
    switch (op.kind) {
    case OP_STORE:
        actor->buffer[actor->buffered++] = (struct buffered){.op = op, .clock = actor->clock};
        actor->buffer[actor->buffered - 1].op.kind = OP_FLUSH;
        break;
    case OP_FLUSH: {
        struct actor *thread = &state->actor[a - THREADS_MOST];
        memcpy((void *)op.at, &op.value, op.bytes);
        thread->buffered--;
        memmove(thread->buffer, thread->buffer + 1, thread->buffered * sizeof thread->buffer[0]);
        break;
    }
    case OP_LOCK:
        word_at(first_key(&op))->locked = true;
        word_at(first_key(&op))->lock = state->depth;
        break;
    case OP_UNLOCK:
        word_at(first_key(&op))->locked = false;
        break;
    case OP_WAKE:
        wake_one(&op);
        break;
    case OP_BARRIER:
        state->barriers++;
        break;
    case OP_VANISH:
        node->backtrack |= node->enabled;
        vanish_others(a);
        break;
    default:
        break;
    }
    note_latest(a, op.kind);
    state->depth++;
    state->steps++;
}
