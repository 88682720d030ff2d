/*
 * A thread's first allocation is interrupted after each single instruction, by a signal handler that allocates too: whoever comes
 * first, the thread has one heap.
 */
#include <pthread.h>
#include <stdbool.h>

#include "heaps.h"
#include "step.h"
#include "unit.h"

enum { SIZE = 64, EACH = 300, STRIDE = 97, STEPS_MOST = 100000 };

static bool interrupted;

/* It gets nothing where it has interrupted the holder of a lock. */
static void allocate(void)
{
    hak_free(hak_malloc(SIZE));
}

static void *be_born(void *steps)
{
    CHECK(step_interrupt_after((int)(intptr_t)steps, allocate));
    void *block = hak_malloc(SIZE);
    step_end();
    interrupted = step_was_interrupted();
    CHECK(block != NULL);
    unsigned own = 0;
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        own += heap->tls == &thread_view;
    CHECK(own == 1 && view_load()->heap->tls == &thread_view);
    hak_free(block);
    return NULL;
}

static void has_one_heap(void)
{
    heap_own();
    int steps = 1;
    do {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, be_born, (void *)(intptr_t)steps) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        steps += steps < EACH ? 1 : STRIDE;
        CHECK(steps < STEPS_MOST);
    } while (interrupted);
    CHECK(steps > EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT_TEST(has_one_heap)};
    return cmocka_run_group_tests_name("birth_step", tests, NULL, NULL);
}
