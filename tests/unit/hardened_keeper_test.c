/* heap/keeper.h, in the hardened library: what threads ask for while a keeper has come, and their heaps are not closed yet. */
#include "unit.h"

#include "api/hot.h"
#include "heap/keeper.h"
#include "heap/magazine.h"
#include "heaps.h"
#include "span/span.h"

enum { BLOCKS = 1000 };

static _Alignas(64) char kept[SMALL_MAX];
static volatile size_t asked; /* to the compiler malloc changes no variable of ours */
static void *first_given;
static int taken_back;

static void *keep(const struct request *request, const struct os_frame *from)
{
    (void)from;
    asked = request->size;
    return kept;
}

static bool take_back(void *p, const struct freeing *how)
{
    CHECK(p == first_given && how->family == FAMILY_UNKNOWN && how->size == SIZE_UNKNOWN);
    taken_back++;
    return true;
}

static bool no(void)
{
    return false;
}

static const struct keeper keeper = {.allocate = keep, .free = take_back, .lock_is_mine = no};

/* Heaps are closed one by one: in their magazines are blocks with the seal of a free one. */
static void what_has_no_seal_is_not_taken_from_a_heap_that_a_keeper_will_close(void)
{
    const size_t sealed = SMALL_MAX - 8;
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = hak_malloc(sealed);
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(magazine_count(view_load()->heap, size_class_of(SMALL_MAX)) > 0);
    store_release(&current_keeper, &keeper);
    CHECK(hak_malloc(SMALL_MAX) != NULL && asked == SMALL_MAX);
    CHECK(hak_malloc(0) != NULL && asked == 0);
    store_release(&current_keeper, NULL);
}

/* A keeper has come between the caller's look and the door's. */
static void *door_of_the_keeper(size_t size)
{
    bool zero;
    asked = size;
    if (keeper_now() != NULL)
        return kept;
    store_release(&current_keeper, &keeper);
    first_given = span_take(units_per_page(), units_per_page(), &zero);
    CHECK(first_given != NULL);
    arena_assign(first_given, units_per_page(), TAG_CHECKED, NULL);
    return first_given;
}

static void a_keeper_is_not_asked_for_seals(void)
{
    static const size_t requests[] = {100, 0};
    for (int i = 0; i < 2; i++) {
        heap_own();
        CHECK(hardened_malloc(requests[i], door_of_the_keeper) != NULL);
        CHECK(asked == requests[i] && taken_back == i + 1);
        store_release(&current_keeper, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(what_has_no_seal_is_not_taken_from_a_heap_that_a_keeper_will_close),
        UNIT_TEST(a_keeper_is_not_asked_for_seals),
    };
    return cmocka_run_group_tests_name("hardened_keeper", tests, NULL, NULL);
}
