/*
 * A signal handler that allocates comes after each single instruction of what an operation does at its soft limit, and of
 * what sets limits: it must never wait for a lock of its own thread, and the callback comes once.
 */
#include "unit.h"

#include <stdbool.h>
#include <unistd.h>

#include "config/policy.h"
#include "fake_os.h"
#include "heap/absent.h"
#include "heap/fork.h"
#include "heaps.h"
#include "span/limit.h"
#include "step.h"

enum { BLOCK = 100000, EACH = 13 }; /* a lock is held for more instructions than that */

static volatile int calls;

/* Large blocks: nothing here closes magazines to handlers that interrupt a hot function. */
static void allocate(void)
{
    hak_free(hak_malloc(BLOCK / 2)); /* NULL, if it has interrupted the holder of a lock */
}

static void count_call(size_t held, size_t limit, void *data)
{
    (void)data;
    CHECK(held > limit);
    CHECK(!fork_holds_any_lock());
    calls++;
}

static void set_up(void)
{
    hak_malloc_trim(0);
    fake_clock_set(1000);
    CHECK(hak_set_limit(limit_held() - absent_bytes() + 1, 0) == 0);
    hak_set_limit_callback(count_call, NULL);
    calls = 0;
}

static void *block;

static void pass_limit(void)
{
    block = hak_malloc(BLOCK);
}

static void set_limits(void)
{
    CHECK(hak_set_limit(1, 0) == 0);
    hak_set_limit_callback(NULL, NULL);
    block = NULL;
}

static void step_through(void (*action)(void), bool once)
{
    struct heap *heap = heap_own();
    policy.bigcache_bytes = 0;
    set_up();
    CHECK(step_divide_each(EACH, allocate));
    action();
    step_end();
    CHECK(calls == 1 || !once);
    CHECK(heap->in_door == 0 && !fork_holds_any_lock());
    hak_free(block);
    if (step_has_divided())
        _exit(0);
    CHECK(step_count() > 10 * EACH);
}

static void passing_the_limit(void)
{
    step_through(pass_limit, true);
}

/* Whether the handler's own request is told depends on when it comes. */
static void setting_limits(void)
{
    step_through(set_limits, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(passing_the_limit),
        UNIT_TEST(setting_limits),
    };
    return cmocka_run_group_tests_name("relief_step", tests, NULL, NULL);
}
