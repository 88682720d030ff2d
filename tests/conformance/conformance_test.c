/*
 * The allocation family to the letter: C23, POSIX.1-2024 and the glibc manual. Built twice, on the hak_
 * names and on the libc names (see support/family.h).
 */
#include "cases.h"
#include "family.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_size_gives_unique_blocks),
        cmocka_unit_test(oversize_fails_with_enomem),
        cmocka_unit_test(oversize_alignment_plus_size_fails),
        cmocka_unit_test(overflowing_products_fail_with_enomem),
        cmocka_unit_test(usable_area_covers_the_request_and_is_writable),
        cmocka_unit_test(blocks_have_natural_alignment),
        cmocka_unit_test(aligned_blocks_are_aligned_and_apart),
        cmocka_unit_test(aligned_alloc_wants_a_power_of_two),
        cmocka_unit_test(posix_memalign_wants_a_power_of_two_of_pointers),
        cmocka_unit_test(memalign_rounds_the_alignment_up),
        cmocka_unit_test(valloc_and_pvalloc_give_pages),
        cmocka_unit_test(realloc_of_null_allocates),
        cmocka_unit_test(realloc_to_zero_frees),
        cmocka_unit_test(realloc_keeps_content_up_and_down),
        cmocka_unit_test(realloc_keeps_content_between_random_sizes),
        cmocka_unit_test(realloc_keeps_content_of_aligned_blocks),
        cmocka_unit_test(failing_realloc_leaves_the_block),
        cmocka_unit_test(reallocarray_follows_realloc),
        cmocka_unit_test(calloc_gives_zeroes_from_fresh_memory),
        cmocka_unit_test(calloc_gives_zeroes_from_dirty_memory),
        cmocka_unit_test(free_keeps_errno),
        cmocka_unit_test(free_of_a_full_magazine_keeps_errno),
        cmocka_unit_test(free_of_another_threads_block_keeps_errno),
        cmocka_unit_test(every_block_may_go_to_every_free),
        cmocka_unit_test(usable_size_of_null_is_zero),
        cmocka_unit_test(trim_reports_and_harms_nothing),
        cmocka_unit_test(mallopt_accepts_the_known_options),
        cmocka_unit_test(mallinfo_grows_with_allocation),
        cmocka_unit_test(malloc_info_writes_xml),
        cmocka_unit_test(malloc_stats_writes_to_stderr),
        cmocka_unit_test(prewarm_prepares_small_sizes),
        cmocka_unit_test(version_is_three_numbers),
    };
    family_require_hakmem();
    return cmocka_run_group_tests_name(family.name, tests, NULL, NULL);
}
