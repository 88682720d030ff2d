/* heap/relief.h, api/limit.c: when the program is told of its limit, and what it may do then. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "config/policy.h"
#include "fake_os.h"
#include "heap/absent.h"
#include "heap/fork.h"
#include "heaps.h"
#include "listener.h"
#include "nodes.h"
#include "span/limit.h"

static void called_when_nothing_else_helps(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listener_set(listener_count);
    struct node *list = nodes_take(NULL, 3000, 7 * MIB);
    CHECK(listener_calls == 0);
    list = nodes_take(list, 3000, 2 * MIB);
    CHECK(listener_calls == 1);
    CHECK(listener_last_limit == 8 * MIB && listener_last_held < 9 * MIB);
    list = nodes_take(list, 100000, 50 * MIB);
    CHECK(listener_calls == 1);
    nodes_free(list);
}

static void called_once_a_crossing(void)
{
    heap_own();
    fake_clock_set(1000);
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listener_set(listener_count);
    for (size_t crossing = 1; crossing <= 5; crossing++) {
        fake_clock_set(1000 * crossing);
        nodes_free(nodes_take(NULL, 3000, 16 * MIB));
        CHECK(listener_calls == crossing);
        hak_malloc_trim(0);
        CHECK(limit_held() < 8 * MIB);
    }
    /* Down and up again at once: not more often than every 100 ms. */
    nodes_free(nodes_take(NULL, 3000, 16 * MIB));
    CHECK(listener_calls == 5);
}

static int depth;
static struct node *cache;

/* As a program does that drops what it can do without. */
static void work_in_callback(size_t held, size_t limit, void *data)
{
    CHECK(++depth == 1);
    CHECK(held > limit && data == &listener_calls);
    CHECK(view_load()->heap->in_door == 0);
    CHECK(!fork_holds_any_lock());
    errno = 77;
    nodes_free(cache);
    cache = NULL;
    /* More of everything, far beyond the limit. */
    struct node *list = nodes_take(nodes_take(NULL, 700, 4 * MIB), 300000, 30 * MIB);
    list = hak_realloc(list, 3 * MIB);
    CHECK(list != NULL);
    nodes_free(list->next);
    hak_free(list);
    hak_malloc_trim(0);
    listener_calls++;
    depth--;
}

static void callback_may_allocate_and_free(void)
{
    static const size_t sizes[] = {24, 3000, 30000, 100000, 1000000};
    heap_own();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        listener_calls = 0;
        fake_clock_set(1000 * (i + 1));
        CHECK(hak_set_limit(16 * MIB, 0) == 0);
        listener_set(work_in_callback);
        cache = nodes_take(NULL, 5000, 8 * MIB);
        errno = 55;
        struct node *list = nodes_take(NULL, sizes[i], 12 * MIB);
        CHECK(errno == 55);
        CHECK(listener_calls == 1 && cache == NULL);
        nodes_free(list);
        hak_malloc_trim(0);
    }
}

static void callback_may_come_in_any_call(void)
{
    heap_own();
    static const size_t step = 512 * KIB;
    for (int kind = 0; kind < 6; kind++) {
        listener_calls = 0;
        fake_clock_set(1000 * (uint64_t)(kind + 1));
        CHECK(hak_set_limit(limit_held() - absent_bytes() + 4 * MIB, 0) == 0);
        listener_set(work_in_callback);
        unsigned char *block = hak_malloc(300000);
        CHECK(block != NULL);
        memset(block, 9, 300000);
        for (size_t n = 1; listener_calls == 0; n++) {
            CHECK(n < 10000);
            void *p = block;
            switch (kind) {
            case 0:
                p = hak_calloc(1, step);
                break;
            case 1:
                p = hak_aligned_alloc(1 << 16, step);
                break;
            case 2:
                p = hak_aligned_alloc(4096, 100);
                break;
            case 3:
                block = p = hak_realloc(block, 300000 + n * step);
                break;
            case 4:
                p = hak_realloc(hak_malloc(100), 20000);
                break;
            default:
                CHECK(hak_prewarm(1000 + n, 40) > 0);
                for (int i = 0; i < 40; i++) /* what nobody has used does not count */
                    p = hak_malloc(1000 + n);
            }
            CHECK(p != NULL);
        }
        for (size_t i = 0; i < 300000; i++)
            CHECK(block[i] == 9);
        CHECK(listener_calls == 1);
    }
}

static void raise_limit(size_t held, size_t limit, void *data)
{
    CHECK(data == &listener_calls);
    listener_calls++;
    CHECK(hak_set_limit(2 * limit, 4 * held) == 0);
}

static void callback_may_change_the_limit(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listener_set(raise_limit);
    struct node *list = nodes_take(NULL, 3000, 14 * MIB);
    CHECK(listener_calls == 1);
    CHECK(policy.soft_limit == 16 * MIB && policy.hard_limit >= 32 * MIB);
    fake_clock_set(UINT64_MAX / 2);
    list = nodes_take(list, 3000, 6 * MIB);
    CHECK(listener_calls == 2);
    nodes_free(list);
}

static void end_listening(size_t held, size_t limit, void *data)
{
    (void)held;
    (void)limit;
    (void)data;
    listener_calls++;
    hak_set_limit_callback(NULL, NULL);
}

static void callback_may_go(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listener_set(end_listening);
    nodes_free(nodes_take(NULL, 3000, 14 * MIB));
    CHECK(listener_calls == 1);
}

static void end_the_thread(size_t held, size_t limit, void *data)
{
    (void)held;
    (void)limit;
    (void)data;
    listener_calls++;
    pthread_exit(NULL);
}

static void *pass_the_limit(void *unused)
{
    nodes_free(nodes_take(NULL, 3000, 14 * MIB));
    return unused;
}

/* The next crossing is told as well. */
static void callback_may_end_its_thread(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listener_set(end_the_thread);
    for (size_t crossing = 1; crossing <= 3; crossing++) {
        pthread_t thread;
        fake_clock_set(1000 * crossing);
        CHECK(pthread_create(&thread, NULL, pass_the_limit, NULL) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(listener_calls == crossing);
        listener_set(end_the_thread);
    }
}

static void soft_comes_before_hard(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 12 * MIB) == 0);
    listener_set(listener_count);
    struct node *list = nodes_exhaust(NULL, 3000);
    CHECK(listener_calls == 1);
    nodes_free(list);
    CHECK(hak_malloc(MIB) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(called_when_nothing_else_helps),
        UNIT_TEST(called_once_a_crossing),
        UNIT_TEST(callback_may_allocate_and_free),
        UNIT_TEST(callback_may_come_in_any_call),
        UNIT_TEST(callback_may_change_the_limit),
        UNIT_TEST(callback_may_go),
        UNIT_TEST(callback_may_end_its_thread),
        UNIT_TEST(soft_comes_before_hard),
    };
    return cmocka_run_group_tests_name("relief_callback", tests, NULL, NULL);
}
