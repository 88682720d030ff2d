/* What the allocator's code calls at each access, by way of access.c. */
#include "scheduler.h"

#include <string.h>

#include "search.h"

struct scheduler *state;
_Thread_local int self = MAIN;

bool sched_on(void)
{
    return self != MAIN && state->on && !state->abandon;
}

int sched_self(void)
{
    return self;
}

void *sched_tls_word(int thread)
{
    return state->worker[thread].tls_word;
}

void sched_step(enum op_kind kind, const void *at, size_t bytes, uint64_t value, const void *caller)
{
    struct op op = {.kind = kind, .at = (uintptr_t)at, .bytes = bytes, .value = value, .caller = caller};
    if (!sched_on())
        return;
    sched_unpeek();
    if (++state->accesses > ACCESSES_MOST)
        sched_violation("a run does not end");
    if (op_is_memory(kind) && !note_use(&op) && kind != OP_LOCK && kind != OP_UNLOCK && kind != OP_SLEEP &&
        kind != OP_WAKE && kind != OP_WAKEN)
        return;
    state->actor[self].op = op;
    state->actor[self].asleep = kind == OP_WAKEN;
    if (state->prologue) {
        hand_over(MAIN);
        wait_for(&state->worker[self].go);
        if (state->abandon || state->actor[self].finished)
            longjmp(state->worker[self].base, 1);
        return;
    }
    go_on();
}

bool sched_forward(const void *at, uint64_t *value)
{
    const struct actor *actor = &state->actor[self];
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
    const struct actor *actor = &state->actor[self];
    for (unsigned i = 0; i < actor->buffered; i++) {
        const struct op *op = &actor->buffer[i].op;
        if (op->at + op->bytes <= (uintptr_t)at || (uintptr_t)at + bytes <= op->at)
            continue;
        struct op *hidden = &state->hidden[state->hidden_count++];
        *hidden = *op;
        memcpy(&hidden->value, (void *)op->at, op->bytes);
        memcpy((void *)op->at, &op->value, op->bytes);
    }
}

void sched_unpeek(void)
{
    while (state->hidden_count > 0) {
        const struct op *hidden = &state->hidden[--state->hidden_count];
        memcpy((void *)hidden->at, &hidden->value, hidden->bytes);
    }
}
