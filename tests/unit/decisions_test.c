/* learn/decisions.h: the ring of what the learner has decided. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "learn/decisions.h"

static struct decision kept[DECISIONS_KEPT];

/* All words of the n-th are known by n. */
static struct decision numbered(uint64_t n)
{
    return (struct decision){n, DECIDED_KNOB, (uint32_t)n, 2 * n, 3 * n, 4 * n, 5 * n, -(int64_t)n, 6 * n, 1};
}

static bool is_whole(const struct decision *d)
{
    struct decision expected = numbered(d->ms);
    return memcmp(d, &expected, sizeof expected) == 0;
}

static void note(uint64_t n)
{
    struct decision d = numbered(n);
    decision_note(&d);
}

static void there_are_none_at_first(void)
{
    CHECK(decisions_copy(kept, DECISIONS_KEPT) == 0);
}

static void the_oldest_comes_first(void)
{
    for (uint64_t n = 0; n < 10; n++)
        note(n);
    CHECK(decisions_copy(kept, DECISIONS_KEPT) == 10);
    for (uint64_t n = 0; n < 10; n++)
        CHECK(kept[n].ms == n && is_whole(&kept[n]));
}

static void the_latest_are_kept(void)
{
    for (uint64_t n = 0; n < 1000; n++)
        note(n);
    CHECK(decisions_copy(kept, DECISIONS_KEPT) == DECISIONS_KEPT);
    CHECK(kept[0].ms == 1000 - DECISIONS_KEPT && kept[DECISIONS_KEPT - 1].ms == 999);
    CHECK(decisions_copy(kept, 3) == 3);
    CHECK(kept[0].ms == 997 && kept[2].ms == 999);
    CHECK(decisions_copy(kept, 0) == 0);
}

static void *note_many(void *from)
{
    for (uint64_t n = 0; n < 20000; n++)
        note((uintptr_t)from + n);
    return NULL;
}

static void none_is_torn(void)
{
    enum { WRITERS = 3 };
    pthread_t threads[WRITERS];
    for (uintptr_t i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, note_many, (void *)(i * 1000000)) == 0);
    for (int looks = 0; looks < 300; looks++) {
        size_t count = decisions_copy(kept, DECISIONS_KEPT);
        for (size_t i = 0; i < count; i++)
            CHECK(is_whole(&kept[i]));
    }
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(decisions_copy(kept, DECISIONS_KEPT) >= DECISIONS_KEPT - WRITERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(there_are_none_at_first),
        UNIT_TEST(the_oldest_comes_first),
        UNIT_TEST(the_latest_are_kept),
        UNIT_TEST(none_is_torn),
    };
    return cmocka_run_group_tests_name("decisions", tests, NULL, NULL);
}
