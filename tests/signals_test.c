/*
 * Signal handlers that allocate, free and reallocate, unbalanced, wherever they interrupt the program: after
 * every single instruction of the allocator, where the processor can step itself, and from timers and other
 * threads at any time. Every block carries a pattern.
 */
#include "check.h"
#include "family.h"
#include "process.h"
#include "random.h"
#include "scale.h"
#include "step.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 48, THREADS = 6 };

/* Blocks with what must stand in them. */
struct set {
    unsigned char *block[SLOTS];
    size_t size[SLOTS];
    uint64_t random;
    bool stepped;   /* copying and zeroing take a signal an instruction: only small blocks are */
    size_t refused; /* requests that failed */
    size_t done;
};

static void check_block(const struct set *set, size_t slot)
{
    const unsigned char *block = set->block[slot];
    if (block != NULL)
        CHECK(block[0] == (unsigned char)(slot + 1) && block[set->size[slot] - 1] == (unsigned char)(slot + 1));
}

static void mark_block(struct set *set, size_t slot, unsigned char *block, size_t size)
{
    set->block[slot] = block;
    set->size[slot] = size;
    if (block == NULL)
        set->refused++;
    else
        block[0] = block[size - 1] = (unsigned char)(slot + 1);
}

static size_t choose_size(struct set *set)
{
    switch (random_below(&set->random, 16)) {
    case 0:
        return 1 + random_below(&set->random, 40000);
    case 1:
        return 1 + random_below(&set->random, 300000);
    default:
        return 1 + random_below(&set->random, 4) * 16;
    }
}

/* One operation on a slot of the set. */
static void operate(struct set *set)
{
    size_t slot = random_below(&set->random, SLOTS);
    size_t size = choose_size(set);
    size_t choice = random_below(&set->random, 8);
    if (set->stepped && (choice == 0 || choice == 2))
        size %= 256;
    size += size == 0;
    check_block(set, slot);
    set->done++;
    switch (choice) {
    case 0: {
        unsigned char *moved = family.realloc(set->block[slot], size);
        if (moved != NULL || set->block[slot] == NULL)
            mark_block(set, slot, moved, size);
        break;
    }
    case 1:
        family.free(set->block[slot]);
        mark_block(set, slot, family.memalign(64, size), size);
        break;
    case 2:
        family.free(set->block[slot]);
        mark_block(set, slot, family.calloc(1, size), size);
        break;
    case 3:
    case 4:
        family.free(set->block[slot]);
        set->block[slot] = NULL;
        break;
    default:
        if (set->block[slot] != NULL)
            family.free(set->block[slot]);
        mark_block(set, slot, family.malloc(size), size);
    }
}

static void release(struct set *set)
{
    for (size_t slot = 0; slot < SLOTS; slot++) {
        check_block(set, slot);
        family.free(set->block[slot]);
        set->block[slot] = NULL;
    }
}

/* One for each depth of handlers that interrupt each other. */
enum { DEPTH = 3 };
static _Thread_local struct set in_handlers[DEPTH];
static _Thread_local unsigned depth;

static void handler(int number)
{
    (void)number;
    int saved = errno;
    if (depth < DEPTH) {
        struct set *set = &in_handlers[depth++];
        atomic_signal_fence(memory_order_seq_cst);
        operate(set);
        if (set->random % 3 == 0)
            operate(set);
        atomic_signal_fence(memory_order_seq_cst);
        depth--;
    }
    errno = saved;
}

static void release_handlers(void)
{
    for (unsigned i = 0; i < DEPTH; i++)
        release(&in_handlers[i]);
}

static void begin_handlers(uint64_t random)
{
    depth = 0;
    for (unsigned i = 0; i < DEPTH; i++)
        in_handlers[i] = (struct set){.random = random + i};
}

static void handle(int number, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(number, &action, NULL) == 0);
}

/* The program's own requests are never refused; those of a handler may be, when it interrupted its own thread
 * with a lock in its hands: here, where most requests are of handlers and many are large, one instruction in five. */
static void report(const char *what, const struct set *outside)
{
    size_t done = 0;
    size_t refused = 0;
    for (unsigned i = 0; i < DEPTH; i++) {
        done += in_handlers[i].done;
        refused += in_handlers[i].refused;
    }
    printf("%s: %zu operations interrupted by %zu, %zu of them refused\n", what, outside->done, done, refused);
    CHECK(outside->refused == 0);
    CHECK(refused < done / 2);
}

static const char no_steps[] = "this processor is not stepped";

static void stepped(void)
{
    struct set set = {.random = 1, .stepped = true};
    begin_handlers(2);
    handle(SIGTRAP, 0);
    if (!step_begin()) {
        CANNOT_TRY(no_steps);
        return;
    }
    for (size_t i = 0; i < scaled_work(300); i++)
        operate(&set);
    step_end();
    CHECK(in_handlers[0].done > set.done * 20);
    report("stepped", &set);
    release(&set);
    release_handlers();
}

static pthread_key_t last;

/* Runs after the allocator's destructor, whose key is older. Further on libc blocks all signals. */
static void stop_stepping(void *unused)
{
    (void)unused;
    step_end();
}

/* A thread's whole life, its first allocation and its end included, one step at a time. */
static void *step_through_life(void *argument)
{
    struct set set = {.random = (uint64_t)(uintptr_t)argument, .stepped = true};
    CHECK(pthread_setspecific(last, &last) == 0);
    begin_handlers(set.random + 7);
    CHECK(step_begin());
    for (int i = 0; i < 20; i++)
        operate(&set);
    release(&set);
    return NULL; /* the blocks that the handler keeps are lost */
}

static void stepped_lives(void)
{
    if (!step_begin()) {
        CANNOT_TRY(no_steps);
        return;
    }
    step_end();
    CHECK(pthread_key_create(&last, stop_stepping) == 0);
    for (size_t i = 0; i < scaled_work(8); i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, step_through_life, (void *)(uintptr_t)(i + 1)) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static void interrupt(void)
{
    handler(SIGTRAP);
}

static size_t interrupted_forks;

static void *fork_before_anything_else(void *steps)
{
    int status;
    begin_handlers((uintptr_t)steps);
    CHECK(step_interrupt_after((int)(uintptr_t)steps, interrupt));
    pid_t child = fork();
    step_end();
    if (child == 0) {
        family.free(family.malloc(100));
        _exit(0);
    }
    interrupted_forks += step_was_interrupted();
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    release_handlers();
    return NULL;
}

/* A thread whose first allocation is in a handler that interrupts its fork. */
static void stepped_forks(void)
{
#if !defined(__GLIBC__)
    CANNOT_TRY("the C library blocks all signals while it forks");
    return;
#endif
    enum { STEPS = 6000 }; /* a fork here has some 4,000 */
    if (!step_interrupt_after(STEPS, interrupt)) {
        CANNOT_TRY(no_steps);
        return;
    }
    step_end();
    size_t forks = scaled_work(40);
    for (size_t i = 0; i < forks; i++) {
        pthread_t thread;
        void *steps = (void *)(uintptr_t)(10 + STEPS * i / forks);
        CHECK(pthread_create(&thread, NULL, fork_before_anything_else, steps) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(interrupted_forks > forks / 4);
}

static bool stop;

static void *work_under_fire(void *argument)
{
    struct set set = {.random = (uint64_t)(uintptr_t)argument};
    begin_handlers(set.random + 100);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        operate(&set);
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    report("under fire", &set);
    release(&set);
    release_handlers();
    return NULL;
}

/* Two signals that interrupt each other's handlers, one on a stack of its own; more threads than processors. */
static void fire(void)
{
    pthread_t threads[THREADS];
    handle(SIGUSR1, SA_RESTART | SA_NODEFER);
    handle(SIGUSR2, SA_RESTART);
    handle(SIGPROF, SA_RESTART);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work_under_fire, (void *)(i + 1)) == 0);
    struct itimerval often = {{0, 200}, {0, 200}};
    CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
    begin_handlers(5);
    uint64_t end = process_now_ms() + 30 * HAK_TEST_WORK_PERCENT;
    uint64_t random = 9;
    while (process_now_ms() < end) {
        (void)pthread_kill(threads[random_below(&random, THREADS)], random_below(&random, 2) != 0 ? SIGUSR1 : SIGUSR2);
        if (random_below(&random, 50) == 0)
            usleep(20);
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_PROF, &never, NULL) == 0);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    release_handlers();
}

/* Handlers that do not return: siglongjmp out of any instruction of the allocator. POSIX allows no allocation
 * afterwards if that was in malloc, but programs do it. Locks that were held then stay held; so this jumps only
 * where the hot functions were interrupted, which the wrapper has to notice. */
static sigjmp_buf way_out;
static unsigned steps_left;

static void leave(int number)
{
    (void)number;
    if (--steps_left == 0)
        siglongjmp(way_out, 1);
}

static void left_by_longjmp(int flags)
{
    enum { HOT_STEPS = 30 };
    void *volatile kept = NULL;
    volatile unsigned left = 0;
    struct sigaction action = {.sa_handler = leave, .sa_flags = flags};
    for (volatile unsigned step = 1; step < HOT_STEPS; step++) {
        family.free(family.malloc(48)); /* so that the next is a hit */
        CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
        if (sigsetjmp(way_out, 1) == 0) {
            steps_left = step + 4;
            if (!step_begin()) {
                CANNOT_TRY(no_steps);
                return;
            }
            kept = family.malloc(48);
            step_end();
        } else {
            left++;
        }
        signal(SIGTRAP, SIG_IGN);
        (void)kept;
        struct set set = {.random = step};
        for (int i = 0; i < 200; i++)
            operate(&set);
        release(&set);
        CHECK(set.refused == 0);
    }
    CHECK(left > HOT_STEPS / 2);
}

int main(void)
{
    static char stack[1 << 16];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    family_require_hakmem();
    setvbuf(stdout, NULL, _IONBF, 0);
    stepped();
    stepped_lives();
    stepped_forks();
    left_by_longjmp(0);
    CHECK(sigaltstack(&own, NULL) == 0);
    left_by_longjmp(SA_ONSTACK);
    fire();
    return 0;
}
