/* The conformance cases, listed in conformance_test.c and written in the file named above each group. */
#ifndef HAK_TEST_CASES_H
#define HAK_TEST_CASES_H

/* cmocka.h needs some of these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* sizes.c */
void zero_size_gives_unique_blocks(void **state);
void oversize_fails_with_enomem(void **state);
void oversize_alignment_plus_size_fails(void **state);
void overflowing_products_fail_with_enomem(void **state);
void usable_area_covers_the_request_and_is_writable(void **state);

/* alignment.c */
void blocks_have_natural_alignment(void **state);
void aligned_blocks_are_aligned_and_apart(void **state);
void aligned_alloc_wants_a_power_of_two(void **state);
void posix_memalign_wants_a_power_of_two_of_pointers(void **state);
void memalign_rounds_the_alignment_up(void **state);
void valloc_and_pvalloc_give_pages(void **state);

/* reallocation.c */
void realloc_of_null_allocates(void **state);
void realloc_to_zero_frees(void **state);
void realloc_keeps_content_up_and_down(void **state);
void realloc_keeps_content_between_random_sizes(void **state);
void realloc_keeps_content_of_aligned_blocks(void **state);
void failing_realloc_leaves_the_block(void **state);
void reallocarray_follows_realloc(void **state);

/* zeroing.c */
void calloc_gives_zeroes_from_fresh_memory(void **state);
void calloc_gives_zeroes_from_dirty_memory(void **state);

/* releasing.c */
void free_keeps_errno(void **state);
void free_of_a_full_magazine_keeps_errno(void **state);
void free_of_another_threads_block_keeps_errno(void **state);
void every_block_may_go_to_every_free(void **state);

/* queries.c */
void usable_size_of_null_is_zero(void **state);
void trim_reports_and_harms_nothing(void **state);
void mallopt_accepts_the_known_options(void **state);
void mallinfo_grows_with_allocation(void **state);
void malloc_info_writes_xml(void **state);
void malloc_stats_writes_to_stderr(void **state);
void prewarm_prepares_small_sizes(void **state);
void version_is_three_numbers(void **state);

#endif
