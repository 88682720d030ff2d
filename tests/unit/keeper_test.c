/* heap/keeper.h: what threads ask for while a keeper has come, and their heaps are not closed yet. */
#include "unit.h"

#include <stdint.h>

#include "heap/keeper.h"
#include "heaps.h"
#include "span/span.h"

static struct request asked;
static int given_back;

static void *allocate(const struct request *request, const struct os_frame *from)
{
    (void)from;
    bool zero;
    size_t units = units_per_page();
    void *at = span_take(units, units, &zero);
    CHECK(at != NULL);
    arena_assign(at, units, TAG_CHECKED, NULL);
    asked = *request;
    return at;
}

static bool take_back(void *p, const struct freeing *how)
{
    (void)how;
    size_t units = units_per_page();
    CHECK(arena_tag(p) == TAG_CHECKED);
    arena_assign(p, units, TAG_NONE, NULL);
    span_give(p, units, true);
    given_back++;
    return true;
}

static void nothing(void) {}

static bool no(void)
{
    return false;
}

static const struct keeper keeper = {
    .allocate = allocate, .free = take_back, .give_back = nothing, .lock = nothing, .unlock = nothing, .lock_is_mine = no,
};

/* What finds no block in its magazine comes to the door, which gets a block of a class, and tells a keeper what was asked for. */
static void aligned_requests_are_told_as_they_are(void)
{
    void *block = NULL;
    heap_own();
    store_release(&current_keeper, &keeper);
    CHECK(hak_posix_memalign(&block, 16, 8) == 0);
    CHECK(asked.size == 8 && asked.align == 16 && given_back == 0 && (uintptr_t)block % 16 == 0);
    CHECK(hak_aligned_alloc(32, 100) != NULL);
    CHECK(asked.size == 100 && asked.align == 32 && given_back == 0);
    store_release(&current_keeper, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(aligned_requests_are_told_as_they_are),
    };
    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
