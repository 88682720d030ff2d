/*
 * A thief comes after each single instruction of what the owner of a heap does, and the owner goes on to the end between
 * the thief's barrier and its look at in_door: the latest that it may. If the thief then holds the heap, the owner must
 * not work on it any more: it must see the closed twin.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>

#include "fake_os.h"
#include "heap/freeze.h"
#include "heap/interrupt.h"
#include "heaps.h"
#include "step.h"
#include "unit.h"
#include "worker.h"

enum { SIZE = 64, EACH = 200, STRIDE = 211, STEPS_MOST = 100000 };

static struct worker worker;
static struct heap *owned;
static void (*action)(void);

static sem_t stopped; /* the owner waits in the middle of its action, or is done with it */
static sem_t go_on;
static sem_t finished;
static int stop_at;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        CHECK(errno == EINTR);
}

static void stop(void)
{
    sem_post(&stopped);
    wait_for(&go_on);
}

static void act(void *unused)
{
    (void)unused;
    owned = heap_own();
    CHECK(step_interrupt_after(stop_at, stop));
    action();
    step_end();
    if (!step_was_interrupted())
        sem_post(&stopped);
    sem_post(&finished);
}

/* Or come to its door, where it waits for the lock that the thief holds. */
static void let_owner_finish(void)
{
    enum { WAITED_FOR = 1 };
    sem_post(&go_on);
    while ((load_relaxed(&owned->lock.word) & WAITED_FOR) == 0) {
        if (sem_trywait(&finished) == 0) {
            sem_post(&finished);
            return;
        }
        sched_yield();
    }
}

/* False: the action had ended before. */
static bool thief_comes_after(int instruction)
{
    stop_at = instruction;
    worker_begin(&worker, act, NULL);
    wait_for(&stopped);
    bool in_the_middle = step_was_interrupted();
    if (in_the_middle && load_relaxed(&owned->lock.word) != 0) {
        sem_post(&go_on); /* the thief would wait for the lock that the owner holds now */
    } else if (in_the_middle) {
        fake_os_after_barrier(let_owner_finish);
        bool frozen = freeze_begin(owned);
        fake_os_after_barrier(NULL);
        if (frozen) {
            CHECK(*owned->tls == &owned->twin);
            freeze_end(owned);
        }
    }
    wait_for(&finished);
    worker_wait(&worker);
    return in_the_middle;
}

static void step_through(void (*what)(void))
{
    action = what;
    CHECK(sem_init(&stopped, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0 && sem_init(&finished, 0, 0) == 0);
    worker_start(&worker);
    int instruction = 1;
    while (thief_comes_after(instruction)) {
        /* Long actions: after the first few hundred, in strides. */
        instruction += instruction < EACH ? 1 : STRIDE;
        CHECK(instruction < STEPS_MOST);
    }
    CHECK(instruction > 10);
    worker_stop(&worker);
}

static void hit(void)
{
    hak_free(hak_malloc(SIZE));
}

static void through_the_door(void)
{
    hak_free(hak_malloc(100000));
}

static void interrupted(void)
{
    struct interruption interruption = interrupt_begin((uintptr_t)__builtin_frame_address(0), (struct handler_stack){0});
    interrupt_end(interruption);
}

static void allocating_while_interrupted(void)
{
    struct interruption interruption = interrupt_begin((uintptr_t)__builtin_frame_address(0), (struct handler_stack){0});
    hak_free(hak_malloc(SIZE));
    interrupt_end(interruption);
}

static void hits(void)
{
    step_through(hit);
}

static void doors(void)
{
    step_through(through_the_door);
}

static void handlers(void)
{
    step_through(interrupted);
}

static void allocating_handlers(void)
{
    step_through(allocating_while_interrupted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(hits),
        UNIT_TEST(doors),
        UNIT_TEST(handlers),
        UNIT_TEST(allocating_handlers),
    };
    return cmocka_run_group_tests_name("freeze_step", tests, NULL, NULL);
}
