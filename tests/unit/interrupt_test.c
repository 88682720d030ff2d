/* Handlers that interrupt a hot function: magazines stay as they are, everything else works. */
#include <string.h>

#include "heap/freeze.h"
#include "heap/interrupt.h"
#include "heap/magazine.h"
#include "heaps.h"
#include "unit.h"
#include "worker.h"

enum { SIZE = 64, MANY = 3000 };

static const struct handler_stack no_stack;

static uintptr_t here(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

/* What an interrupted hot function has in its hands, of all classes. */
static void **tops[SIZE_CLASSES];
static void *top_blocks[SIZE_CLASSES];

static void remember_magazines(const struct heap *heap)
{
    memcpy(tops, heap->view.top, sizeof tops);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        top_blocks[class] = *tops[class];
}

static void check_magazines(const struct heap *heap)
{
    CHECK(memcmp(tops, heap->view.top, sizeof tops) == 0);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        CHECK(*tops[class] == top_blocks[class]);
}

static void *blocks[MANY];

static void fill(void *unused)
{
    (void)unused;
    for (int i = 0; i < MANY; i++) {
        blocks[i] = hak_malloc((size_t)(i % 10 + 1) * SIZE);
        CHECK(blocks[i] != NULL);
    }
}

static void free_half(void)
{
    for (int i = 0; i < MANY; i += 2) {
        hak_free(blocks[i]);
        blocks[i] = NULL;
    }
}

static void free_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < MANY; i++) {
        hak_free(blocks[i]);
        blocks[i] = NULL;
    }
}

/* All that a handler may do, unbalanced: it keeps blocks, and frees others that were there before. */
static void work_in_handler(void)
{
    void *kept[MANY / 2];
    for (int i = 0; i < MANY / 2; i++) {
        kept[i] = hak_malloc((size_t)(i % 12 + 1) * SIZE);
        CHECK(kept[i] != NULL);
        memset(kept[i], i, (size_t)(i % 12 + 1) * SIZE);
    }
    free_half();
    hak_free(hak_malloc(1 << 20));
    hak_free(hak_realloc(hak_malloc(SIZE), (size_t)10 * SIZE));
    for (int i = 0; i < MANY / 2; i++) {
        CHECK(*(unsigned char *)kept[i] == (unsigned char)i);
        blocks[2 * i] = kept[i];
    }
    hak_malloc_trim(0);
}

static void magazines_are_left_alone(void)
{
    struct heap *heap = heap_own();
    fill(NULL);
    free_half();
    remember_magazines(heap);
    struct interruption interruption = interrupt_begin(here(), no_stack);
    CHECK(view_load() == &heap->twin);
    work_in_handler();
    check_magazines(heap);
    interrupt_end(interruption);
    CHECK(view_load() == &heap->view);
    CHECK(heap->interrupt.depth == 0);
    check_magazines(heap);
    free_all(NULL);
}

static void handlers_nest(void)
{
    struct heap *heap = heap_own();
    struct interruption outer = interrupt_begin(here(), no_stack);
    struct interruption inner = interrupt_begin(here() - 1000, no_stack);
    hak_free(hak_malloc(SIZE));
    interrupt_end(inner);
    CHECK(view_load() == &heap->twin);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &heap->twin);
    interrupt_end(outer);
    CHECK(view_load() == &heap->view);
}

/* The inner handler is left by siglongjmp into the outer one. */
static void outer_end_is_the_end(void)
{
    struct heap *heap = heap_own();
    struct interruption outer = interrupt_begin(here(), no_stack);
    (void)interrupt_begin(here() - 1000, no_stack);
    interrupt_end(outer);
    CHECK(view_load() == &heap->view && heap->interrupt.depth == 0);
}

static void handler_may_be_left(void)
{
    struct heap *heap = heap_own();
    (void)interrupt_begin(here() - 100000, no_stack);
    CHECK(view_load() == &heap->twin);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &heap->view && heap->interrupt.depth == 0);
}

static void handler_on_its_own_stack_may_be_left(void)
{
    struct heap *heap = heap_own();
    static char low_stack[4096];
    struct handler_stack stack = {(uintptr_t)low_stack, (uintptr_t)low_stack + sizeof low_stack};
    (void)interrupt_begin(stack.high - 16, stack);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &heap->view && heap->interrupt.depth == 0);
}

/* A handler's stack may lie anywhere: this thread's serves as one that lies above the frame. */
static void handler_on_its_own_stack_lasts(void)
{
    struct heap *heap = heap_own();
    struct handler_stack stack = {here() - 100000, here() + 1000};
    struct interruption interruption = interrupt_begin(here() + 500, stack);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &heap->twin && heap->interrupt.depth == 1);
    interrupt_end(interruption);
    CHECK(view_load() == &heap->view);
}

/* The first handler runs on the thread's stack, the second on the one for signals, which lies above: it is no return from the first. */
static void handler_on_the_signal_stack_interrupts_another(void)
{
    struct heap *heap = heap_own();
    struct handler_stack stack = {here() + 1000, here() + 100000};
    struct interruption first = interrupt_begin(here() - 500, stack);
    struct interruption second = interrupt_begin(here() + 50000, stack);
    CHECK(heap->interrupt.depth == 2 && heap->interrupt.frame == here() - 500);
    interrupt_end(second);
    CHECK(view_load() == &heap->twin && heap->interrupt.depth == 1);
    interrupt_end(first);
    CHECK(view_load() == &heap->view && heap->interrupt.depth == 0);
}

/* As if this function ran on the stack for signals, above the frame that was interrupted. */
static void its_requests_leave_magazines_alone(void)
{
    struct heap *heap = heap_own();
    struct handler_stack stack = {here() - 100000, here() + 1000};
    struct interruption first = interrupt_begin(here() - 200000, stack);
    remember_magazines(heap);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &heap->twin && heap->interrupt.depth == 1);
    check_magazines(heap);
    interrupt_end(first);
    CHECK(view_load() == &heap->view);
}

static void left_handler_does_not_count(void)
{
    struct heap *heap = heap_own();
    (void)interrupt_begin(here() - 100000, no_stack);
    struct interruption next = interrupt_begin(here(), no_stack);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &heap->twin);
    interrupt_end(next);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &heap->view && heap->interrupt.depth == 0);
}

static struct heap *victim;

static void steal(void *unused)
{
    (void)unused;
    heap_own();
    CHECK(freeze_begin(victim));
    CHECK(freeze_empty(victim) > 0);
    freeze_end(victim);
}

/* A thief comes while the handler runs: the interrupted function still finds its top slot. */
static void thief_may_come_meanwhile(void)
{
    struct worker worker;
    victim = heap_own();
    fill(NULL);
    free_half();
    worker_start(&worker);
    remember_magazines(victim);
    struct interruption interruption = interrupt_begin(here(), no_stack);
    hak_free(hak_malloc(SIZE));
    worker_run(&worker, steal, NULL);
    check_magazines(victim);
    work_in_handler();
    check_magazines(victim);
    interrupt_end(interruption);
    CHECK(view_load() == &victim->twin); /* its magazines have holes */
    check_magazines(victim);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &victim->view && victim->frozen == FREEZE_NONE);
    free_all(NULL);
    worker_stop(&worker);
}

/* Frozen first, then interrupted. */
static void thief_may_have_come_before(void)
{
    struct worker worker;
    victim = heap_own();
    fill(NULL);
    free_half();
    worker_start(&worker);
    worker_run(&worker, steal, NULL);
    remember_magazines(victim);
    struct interruption interruption = interrupt_begin(here(), no_stack);
    work_in_handler();
    check_magazines(victim);
    interrupt_end(interruption);
    CHECK(view_load() == &victim->twin);
    hak_free(hak_malloc(SIZE));
    CHECK(view_load() == &victim->view);
    free_all(NULL);
    worker_stop(&worker);
}

static void requested_bytes_stay_exact(void)
{
    struct heap *heap = heap_own();
    int64_t before = heap->granted - heap->view.budget;
    struct interruption interruption = interrupt_begin(here(), no_stack);
    for (int i = 0; i < MANY; i++)
        hak_free(hak_malloc(SIZE));
    hak_free(hak_malloc(1 << 20));
    interrupt_end(interruption);
    CHECK(heap->granted - heap->view.budget - heap->twin.budget == before + MANY * SIZE + (1 << 20));
}

static void end_in_a_handler(void *unused)
{
    (void)unused;
    victim = heap_own();
    fill(NULL);
    (void)interrupt_begin(here() - 1000, no_stack);
}

static void thread_may_end_in_a_handler(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, end_in_a_handler, NULL);
    worker_stop(&worker);
    CHECK(victim->tls == NULL && victim->interrupt.depth == 0);
    free_all(NULL);
}

static void thread_without_heap_needs_nothing(void)
{
    struct view *own = thread_view;
    thread_view = STATIC_VIEW(dead);
    struct interruption interruption = interrupt_begin(here(), no_stack);
    CHECK(interruption.heap == NULL);
    CHECK(view_load() == STATIC_VIEW(dead));
    interrupt_end(interruption);
    CHECK(view_load() == STATIC_VIEW(dead));
    thread_view = own;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(magazines_are_left_alone),
        UNIT_TEST(handlers_nest),
        UNIT_TEST(outer_end_is_the_end),
        UNIT_TEST(handler_may_be_left),
        UNIT_TEST(handler_on_its_own_stack_may_be_left),
        UNIT_TEST(handler_on_its_own_stack_lasts),
        UNIT_TEST(handler_on_the_signal_stack_interrupts_another),
        UNIT_TEST(its_requests_leave_magazines_alone),
        UNIT_TEST(left_handler_does_not_count),
        UNIT_TEST(thief_may_come_meanwhile),
        UNIT_TEST(thief_may_have_come_before),
        UNIT_TEST(requested_bytes_stay_exact),
        UNIT_TEST(thread_may_end_in_a_handler),
        UNIT_TEST(thread_without_heap_needs_nothing),
    };
    return cmocka_run_group_tests_name("interrupt", tests, NULL, NULL);
}
