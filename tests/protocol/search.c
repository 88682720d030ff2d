/* Run after run, until no order is left; the command line. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap/view.h"
#include "invariants.h"
#include "search.h"
#include "world.h"

static void *work(void *argument)
{
    self = (int)(intptr_t)argument;
    struct worker *worker = &state->worker[self];
    worker->tls_word = &thread_view;
    sem_post(&state->main);
    for (;;) {
        wait_for(&worker->go);
        if (setjmp(worker->base) != 0)  {
            sem_post(&state->main); /* gone back to the start */
            continue;
        }
        worker->job();
        if (!state->on) {
            sem_post(&state->main);
            continue;
        }
        sched_unpeek();
        state->actor[self].finished = true;
        state->actor[self].op = (struct op){.kind = OP_WRITE};
        if (state->prologue)
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
    state->worker[thread].job = job;
    sem_post(&state->worker[thread].go);
    wait_for(&state->main);
}

/* One order of steps: the known ones, then what prefer() likes. */
static void run_once(void)
{
    const struct protocol_scenario *scenario = state->scenario;
    world_restore();
    state->run++;
    state->depth = 0;
    state->barriers = 0;
    state->accesses = 0;
    state->abandon = false;
    state->current = MAIN;
    memset(state->actor, 0, sizeof state->actor);
    memset(&state->latest, -1, sizeof state->latest);
    state->on = state->prologue = true;
    for (int t = 0; t < scenario->threads; t++) {
        state->worker[t].job = scenario->body[t];
        state->current = t;
        sem_post(&state->worker[t].go);
        wait_for(&state->main);
    }
    state->prologue = false;
    state->current = MAIN;
    /* The first choice is made here; main has no step of its own. */
    int a = choose();
    if (a != MAIN) {
        take_step(a);
        hand_over(a);
        wait_for(&state->main);
    }
    state->on = false;
    bool complete = !state->abandon;
    for (int t = 0; t < scenario->threads; t++) {
        const struct actor *actor = &state->actor[t];
        if (actor->finished && actor->op.at == 0)
            continue;
        state->abandon = true;
        sem_post(&state->worker[t].go);
        wait_for(&state->main);
    }
    state->abandon = false;
    state->runs++;
    if (state->depth > state->longest)
        state->longest = state->depth;
    if (!complete)
        return;
    for (int t = 0; t < scenario->threads; t++)
        run_job(t, scenario->finish[t]);
    invariants_check();
}

/* Goes back to the last node with something left to try. False: there is none. */
static bool next_order(void)
{
    for (int at = state->known; at-- > 0;) {
        struct node *node = &state->node[at];
        uint32_t left = node->backtrack & node->enabled & ~node->done & ~node->sleep;
        if (left == 0)
            continue;
        node->chosen = __builtin_ctz(left);
        node->done |= 1u << node->chosen;
        state->known = at + 1;
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
        state->grew = false;
        state->known = 0;
        state->runs = state->repeats = state->steps = 0;
        state->longest = 0;
        bool more = true;
        while (more && !state->grew) {
            run_once();
            if (runs_most > 0 && state->runs >= runs_most)
                return false;
            more = next_order();
        }
        if (!state->grew)
            return true;
    }
}

static _Noreturn void crash(int signal)
{
    sched_violation("the allocator crashes with signal %d", signal);
}

/* One thread runs at a time: handing over to another processor takes a third longer. */
static void stay_on_one_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* In a process of its own: scenarios start from a fresh allocator. */
static void run_scenario(const struct protocol_scenario *scenario, uint64_t runs_most)
{
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    state->scenario = scenario;
    stay_on_one_processor();
    signal(SIGSEGV, crash);
    sem_init(&state->main, 0, 0);
    double start = now();
    for (int t = 0; t < scenario->threads; t++) {
        sem_init(&state->worker[t].go, 0, 0);
        pthread_create(&state->worker[t].thread, NULL, work, (void *)(intptr_t)t);
        wait_for(&state->main);
    }
    for (int t = 0; t < scenario->threads; t++)
        run_job(t, scenario->setup[t]);
    /* Once in a process's life, and the same whoever does it: hundreds of steps that would show nothing. */
    view_prepare_doubles();
    invariants_check();
    world_save();
    bool all = search(runs_most);
    printf("%-28s %d threads  %9" PRIu64 " orders  %7" PRIu64 " repeats  %11" PRIu64 " steps  longest %4d  %4d shared words  %6.1f s  %s\n",
           scenario->name, scenario->threads, state->runs - state->repeats, state->repeats, state->steps, state->longest, state->shared,
           now() - start, all ? "exhausted" : "NOT exhausted");
    fflush(stdout);
    if (all && scenario->orders > 0 && scenario->orders != state->runs - state->repeats) {
        fprintf(stderr, "%s: there are %" PRIu64 " orders\n", scenario->name, scenario->orders);
        _exit(4);
    }
    _exit(all || state->scenario->partly ? 0 : 3);
}

/* [--runs N] [--broken] [name ...] */
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
    int unknown = argc - at;
    for (const struct protocol_scenario *scenario = scenarios; scenario->name != NULL; scenario++) {
        bool wanted = at == argc;
        for (int i = at; i < argc; i++) {
            bool named = strcmp(argv[i], scenario->name) == 0;
            wanted |= named;
            unknown -= named;
        }
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
    return ran == 0 || unknown != 0 || failures > 0;
}
