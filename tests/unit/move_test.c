/* large/move.h: blocks whose pages move, and what becomes of them where the kernel refuses. */
#include "unit.h"

#include <string.h>

#include "config/policy.h"
#include "fake_os.h"
#include "large/bigcache.h"
#include "larges.h"
#include "os/os.h"
#include "process.h"
#include "span/huge.h"
#include "span/limit.h"
#include "span/span.h"
#include "span/superslab.h"
#include "words.h"

/* A block of a MiB that cannot grow in place. */
static char *cornered_block(uint64_t mark)
{
    char *at = corner(large_take(MIB), MIB);
    write_words(at, 0, MIB, mark);
    return at;
}

static void moves_pages(void)
{
    large_init();
    char *at = cornered_block(6);
    struct large *block = large_find(at);
    char *moved = large_resize(block, 8 * MIB);
    CHECK(moved != NULL && moved != at);
    CHECK(fake_os_made(FAKE_MOVE) == 1);
    CHECK(large_find(at) == NULL);
    CHECK(large_find(moved) == block);
    check_words(moved, MIB, 6);
    check_zero(moved + MIB, 7 * MIB);
    write_words(moved, MIB, 8 * MIB, 6);
    /* Again, from a mapping of its own. */
    char *again = large_resize(block, 30 * MIB);
    CHECK(again != NULL);
    check_words(again, 8 * MIB, 6);
    CHECK(large_resize(block, 300000) == again);
    check_words(again, 300000, 6);
    large_give(again);
    large_evict_before(UINT64_MAX);
    /* The holes are ordinary units. */
    for (int i = 0; i < 10; i++) {
        char *other = large_take(4 * MIB);
        memset(other, 1, 4 * MIB);
    }
}

static void take_a_unit(void)
{
    bool zero;
    CHECK(span_take(1, 1, &zero) != NULL);
}

/* The pages of a block that moves are there once: for others there is room below the hard limit. */
static void moving_pages_count_once(void)
{
    large_init();
    char *at = corner(large_take(8 * MIB), 8 * MIB);
    limit_set(SIZE_MAX, limit_held() + 4 * MIB + 4 * units_per_page() * UNIT_SIZE);
    fake_os_before_refill(take_a_unit);
    CHECK(large_resize(large_find(at), 12 * MIB) != NULL && fake_os_made(FAKE_REFILL_HOLE) == 1);
    fake_os_before_refill(NULL);
    CHECK(limit_held() <= policy.hard_limit);
}

enum os_collapse __real_os_collapse(void *at); /* not the fake one (fake_os.h) */

/* A huge page of the kernel's in it is a mapping of its own. */
static void pages_of_a_block_with_a_huge_page_move(void)
{
    large_init();
    char *at = corner(large_take(8 * MIB), 8 * MIB);
    memset(at, 7, 8 * MIB);
    char *page = (char *)align_up((uintptr_t)at + 1, HUGE_SIZE);
    /* An emulator says that it has done what is advised, and does not. */
    bool made = os_huge_page_size() == HUGE_SIZE && __real_os_collapse(page) == OS_COLLAPSED;
    if (!made || os_can_move(at, 8 * MIB)) {
        CANNOT_TRY("the kernel makes no huge pages here");
        return;
    }
    CHECK(large_resize(large_find(at), 12 * MIB) == NULL); /* as if its user had split it */
    superslab_of(page)->huge = true;
    fake_os_refuse(FAKE_MOVE, 1, FAKE_EVERY);
    CHECK(large_resize(large_find(at), 12 * MIB) == NULL && fake_os_refused() == 2); /* with room to grow, and without */
    fake_os_obey();
    CHECK(!os_can_move(at, 8 * MIB)); /* what was not huge is not to be */
    char *moved = large_resize(large_find(at), 12 * MIB);
    CHECK(moved != NULL && moved != at);
    for (size_t i = 0; i < 8 * MIB; i++)
        CHECK(moved[i] == 7);
    CHECK(os_can_move(moved, 12 * MIB) && process_mapping_has(moved, " nh"));
    CHECK(!huge_is_in(at, 8 * MIB / UNIT_SIZE) && span_dirty_bytes() == 0); /* what it has left is a hole, filled anew */
    large_give(moved);
}

/* Superslabs that are full are to become a huge page, and the kernel has none. */
static void refuse_a_huge_page(void)
{
    enum { START_MS = 5000, END_MS = 60000, PASS_MS = 250 };
    fake_os_refuse(FAKE_COLLAPSE, 1, FAKE_EVERY);
    for (uint64_t now_ms = START_MS; now_ms < END_MS && fake_os_refused() == 0; now_ms += PASS_MS)
        huge_consider(now_ms);
    CHECK(fake_os_refused() == 1);
    fake_os_obey();
}

/* It is several mappings then, and none of its superslabs is huge. */
static void a_moved_block_in_which_no_huge_page_came_moves_again(void)
{
    large_init();
    char *at = corner(large_take(16 * MIB), 16 * MIB);
    struct large *block = large_find(at);
    char *moved = large_resize(block, 24 * MIB);
    CHECK(moved != NULL && moved != at && fake_os_made(FAKE_MOVE) == 1);
    if (!process_mapping_has(moved, " hg")) {
        CANNOT_TRY("the kernel has no huge pages, or its page is not 4 KiB");
        return;
    }
    write_words(moved, 0, 24 * MIB, 6);
    refuse_a_huge_page();
    CHECK(!os_can_move(moved, block->units << UNIT_SHIFT) && !huge_is_in(moved, block->units));
    char *again = large_resize(block, 40 * MIB);
    CHECK(again != NULL && again != moved && fake_os_made(FAKE_MOVE) == 2);
    check_words(again, 24 * MIB, 6);
    CHECK(os_can_move(again, block->units << UNIT_SHIFT) && process_mapping_has(again, " hg"));
}

/* The run to which it moves was in huge pages, and has not been given back. */
static void what_a_block_moves_to_is_no_huge_page(void)
{
    large_init();
    char *at = corner(large_take(8 * MIB), 8 * MIB);
    write_words(at, 0, 8 * MIB, 6);
    bool zero;
    char *run = span_take(16 * MIB / UNIT_SIZE, 1, &zero);
    for (size_t i = 0; i < 16 * MIB; i += SUPERSLAB_SIZE)
        superslab_of(run + i)->huge = true;
    span_give(run, 16 * MIB / UNIT_SIZE, true);
    struct large *block = large_find(at);
    char *moved = large_resize(block, 12 * MIB);
    CHECK(moved == run && fake_os_made(FAKE_MOVE) == 1);
    CHECK(!huge_is_in(moved, block->units) && os_can_move(moved, block->units << UNIT_SHIFT));
    check_words(moved, 8 * MIB, 6);
}

static void refused_move_changes_nothing(void)
{
    large_init();
    char *at = cornered_block(7);
    size_t before = span_used_bytes();
    fake_os_refuse(FAKE_MOVE, 1, FAKE_EVERY);
    CHECK(large_resize(large_find(at), 8 * MIB) == NULL);
    CHECK(fake_os_refused() == 2); /* with room to grow, and without */
    fake_os_obey();
    CHECK(span_used_bytes() == before);
    CHECK(large_find(at) != NULL && large_find(at)->bytes == MIB);
    check_words(at, MIB, 7);
    char *moved = large_resize(large_find(at), 8 * MIB);
    CHECK(moved != NULL);
    check_words(moved, MIB, 7);
}

/* Whether the destination is a hole then, or as it was: nothing of it is lost. */
static void run_of_refused_move_comes_back(void)
{
    large_init();
    char *at = cornered_block(9);
    struct span_stats before, after;
    span_stats(&before);
    fake_os_refuse(FAKE_MOVE, 1, FAKE_EVERY);
    for (int i = 0; i < 50; i++)
        CHECK(large_resize(large_find(at), 8 * MIB) == NULL);
    CHECK(fake_os_refused() == 100); /* with room to grow, and without */
    fake_os_obey();
    span_stats(&after);
    CHECK(after.used_bytes == before.used_bytes);
    CHECK(after.reserved_bytes <= before.reserved_bytes + 32 * MIB);
    check_words(at, MIB, 9);
    for (int i = 0; i < 10; i++)
        memset(large_take(4 * MIB), 1, 4 * MIB);
}

static size_t untouched_bytes(void)
{
    struct large_stats stats;
    large_stats(&stats);
    return stats.untouched_bytes;
}

/* Each move is as long as the block is. */
static void who_grows_in_small_steps_moves_seldom(void)
{
    large_init();
    char *at = cornered_block(6);
    struct large *block = large_find(at);
    for (size_t size = MIB; size < 8 * MIB; size += 64 * KIB) {
        at = large_resize(block, size + 64 * KIB);
        CHECK(at != NULL && block->bytes == size + 64 * KIB);
        check_zero(at + size, 64 * KIB);
        memset(at + size, 1, 64 * KIB);
    }
    CHECK(fake_os_made(FAKE_MOVE) >= 4 && fake_os_made(FAKE_MOVE) <= 12);
    check_words(at, MIB, 6);
    CHECK(untouched_bytes() == (block->units << UNIT_SHIFT) - 8 * MIB && untouched_bytes() > 0);
    CHECK(large_resize(block, 8 * MIB) == at && untouched_bytes() > 0); /* as before: the room stays */
    CHECK(large_resize(block, 4 * MIB) == at && block->units == 4 * MIB / UNIT_SIZE && untouched_bytes() == 0);
    large_give(at);
    large_evict_before(UINT64_MAX);
}

/* What a block grows into that has room gets memory, and is charged already. */
static void growth_into_room_presses_the_soft_limit(void)
{
    large_init();
    char *at = corner(large_take(8 * MIB), 8 * MIB);
    char *moved = large_resize(large_find(at), 12 * MIB);
    struct large_stats stats;
    large_stats(&stats);
    CHECK(moved != at && stats.untouched_bytes == 3 * MIB);
    limit_set(limit_held() - 2 * MIB, SIZE_MAX);
    take_a_unit();
    CHECK(limit_presses() && !limit_begin_relief(stats.untouched_bytes) && !limit_presses());
    CHECK(large_resize(large_find(moved), 14 * MIB) == moved);
    large_stats(&stats);
    CHECK(stats.untouched_bytes == MIB);
    CHECK(limit_presses() && limit_begin_relief(stats.untouched_bytes));
}

static void huge_pages_end_where_a_moved_block_shrinks(void)
{
    large_init();
    char *at = corner(large_take(8 * MIB), 8 * MIB);
    char *moved = large_resize(large_find(at), 32 * MIB);
    CHECK(moved != NULL && moved != at);
    if (!process_mapping_has(moved, " hg")) {
        CANNOT_TRY("the kernel has no huge pages, or its page is not 4 KiB");
        return;
    }
    CHECK(large_resize(large_find(moved), 20 * MIB) == moved && process_mapping_has(moved, " hg"));
    CHECK(large_resize(large_find(moved), 10 * MIB) == moved && process_mapping_has(moved, " nh"));
}

/* It would count. */
static void nothing_more_is_taken_below_a_hard_limit(void)
{
    large_init();
    char *at = cornered_block(6);
    limit_set(SIZE_MAX, GIB);
    struct large *block = large_find(at);
    CHECK(large_resize(block, 8 * MIB) != NULL && block->units == 8 * MIB / UNIT_SIZE);
    limit_set(SIZE_MAX, SIZE_MAX);
    CHECK(large_resize(block, 16 * MIB) != NULL && block->units > 16 * MIB / UNIT_SIZE);
}

/* Each of these leaves a block that no growth of the next one takes. */
static void blocks_built_in_small_steps_do_not_pile_up(void)
{
    large_init();
    for (int i = 0; i < 20; i++) {
        struct large *block = large_find(cornered_block(6));
        for (size_t bytes = MIB; bytes < 3 * MIB; bytes += bytes / 8)
            CHECK(large_resize(block, bytes) != NULL);
        CHECK(block->moved);
        CHECK(bigcache_bytes() <= BIGCACHE_STAYING_MOST);
        large_give(block->base);
    }
}

/* Whose pages are warm. */
static void grows_into_what_is_kept(void)
{
    large_init();
    char *at = cornered_block(6);
    char *kept = large_take(2 * MIB);
    char *longer = large_take(2 * MIB + MIB / 4);
    memset(kept, 1, 2 * MIB);
    large_give(kept);
    struct large *block = large_find(at);
    CHECK(large_resize(block, 2 * MIB) == kept && fake_os_made(FAKE_MOVE) == 0);
    CHECK(large_find(kept) == block && block->bytes == 2 * MIB);
    check_words(kept, MIB, 6);
    CHECK(arena_tag(at) == TAG_LARGE_KEPT && bigcache_bytes() == MIB);
    CHECK(large_take(MIB) == at);
    /* By little: there would be more to copy than to touch. */
    large_give(longer);
    CHECK(large_resize(block, 2 * MIB + MIB / 4) != longer && bigcache_bytes() == 2 * MIB + MIB / 4);
}

/* Its pages go with it: for a little memory that is wanted it does not go. */
static void a_moved_block_is_kept_for_as_many_requests(void)
{
    large_init();
    char *moved = large_resize(large_find(cornered_block(9)), 3 * MIB);
    CHECK(moved != NULL);
    large_give(moved);
    size_t kept = bigcache_bytes();
    CHECK(kept >= 3 * MIB);
    for (size_t taken = 0; taken + MIB < kept; taken += MIB) {
        CHECK(bigcache_bytes() == kept);
        (void)large_take(MIB);
    }
    (void)large_take(MIB);
    CHECK(bigcache_bytes() == 0);
}

/* The hole that a moved block leaves cannot be filled: something foreign is there now. */
static void lost_hole_is_never_used(void)
{
    large_init();
    char *at = cornered_block(8);
    fake_os_refuse(FAKE_REFILL_HOLE, 1, FAKE_EVERY);
    char *moved = large_resize(large_find(at), 8 * MIB);
    CHECK(moved != NULL && fake_os_refused() == 1);
    fake_os_obey();
    check_words(moved, MIB, 8);
    for (int i = 0; i < 200; i++) {
        char *other = large_take(MIB / 2);
        CHECK(other + MIB / 2 <= at || other >= at + MIB);
        memset(other, 1, MIB / 2);
    }
}

static void refused_renewal_is_survived(void)
{
    large_init();
    char *moved = large_resize(large_find(cornered_block(9)), 8 * MIB);
    CHECK(moved != NULL);
    write_words(moved, 0, 8 * MIB, 9);
    fake_os_refuse(FAKE_RENEW, 1, FAKE_EVERY);
    CHECK(large_resize(large_find(moved), 4 * MIB) == moved);
    CHECK(fake_os_refused() == 1);
    check_words(moved, 4 * MIB, 9);
    large_give(moved);
    large_evict_before(UINT64_MAX);
    CHECK(fake_os_refused() == 2);
    fake_os_obey();
    for (int i = 0; i < 20; i++) {
        bool zero = false;
        char *other = large_alloc(MIB, 1, &zero);
        CHECK(other != NULL);
        if (zero)
            check_zero(other, MIB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(moves_pages),
        UNIT_TEST(moving_pages_count_once),
        UNIT_TEST(pages_of_a_block_with_a_huge_page_move),
        UNIT_TEST(a_moved_block_in_which_no_huge_page_came_moves_again),
        UNIT_TEST(what_a_block_moves_to_is_no_huge_page),
        UNIT_TEST(refused_move_changes_nothing),
        UNIT_TEST(run_of_refused_move_comes_back),
        UNIT_TEST(who_grows_in_small_steps_moves_seldom),
        UNIT_TEST(growth_into_room_presses_the_soft_limit),
        UNIT_TEST(huge_pages_end_where_a_moved_block_shrinks),
        UNIT_TEST(nothing_more_is_taken_below_a_hard_limit),
        UNIT_TEST(blocks_built_in_small_steps_do_not_pile_up),
        UNIT_TEST(grows_into_what_is_kept),
        UNIT_TEST(a_moved_block_is_kept_for_as_many_requests),
        UNIT_TEST(lost_hole_is_never_used),
        UNIT_TEST(refused_renewal_is_survived),
    };
    return cmocka_run_group_tests_name("move", tests, NULL, NULL);
}
