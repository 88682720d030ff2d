#include <inttypes.h>
#include <stdio.h>

#include "search.h"

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
    if (state->current != MAIN && (choices >> state->current & 1) != 0)
        return state->current;
    if (state->current != MAIN && !state->actor[state->current].finished && (choices >> buffer_of(state->current) & 1) != 0)
        return buffer_of(state->current);
    return __builtin_ctz(choices);
}

static bool all_finished(void)
{
    for (int t = 0; t < state->scenario->threads; t++)
        if (!state->actor[t].finished)
            return false;
    return true;
}

static void describe_blocked(void)
{
    for (int t = 0; t < state->scenario->threads; t++)
        if (!state->actor[t].finished)
            fprintf(stderr, "  thread %d waits (operation %d at %#" PRIxPTR ")\n", t, (int)state->actor[t].op.kind, state->actor[t].op.at);
}

int choose(void)
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
    if (state->depth == NODES_MOST)
        sched_violation("a run has more than %d steps", NODES_MOST);
    struct node *node = &state->node[state->depth];
    if (state->depth < state->known) {
        if (node->enabled != enabled)
            sched_violation("replay: other actors are enabled (%x, were %x) at step %d", enabled, node->enabled, state->depth);
        return node->chosen;
    }
    uint32_t sleep = state->depth > 0 ? sleep_after(&state->node[state->depth - 1]) : 0;
    uint32_t choices = enabled & ~sleep;
    if (choices == 0)
        return ACTORS_MOST;
    *node = (struct node){.enabled = enabled, .sleep = sleep, .chosen = prefer(choices)};
    node->backtrack = 1u << node->chosen;
    node->done = 1u << node->chosen;
    state->known = state->depth + 1;
    return node->chosen;
}

void hand_over(int thread)
{
    state->current = thread;
    sem_post(thread == MAIN ? &state->main : &state->worker[thread].go);
}

void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

void go_on(void)
{
    int from = self;
    bool done = state->actor[from].finished;
    for (;;) {
        int a = choose();
        if (a == MAIN || a == ACTORS_MOST) {
            state->repeats += a == ACTORS_MOST;
            state->abandon = a == ACTORS_MOST;
            state->on = false;
            hand_over(MAIN);
            break;
        }
        take_step(a);
        if (a >= THREADS_MOST)
            continue;
        if (a == from) {
            state->current = a;
            return;
        }
        hand_over(a);
        break;
    }
    if (done)
        return;
    wait_for(&state->worker[from].go);
    if (state->abandon || state->actor[from].finished)
        longjmp(state->worker[from].base, 1);
}
