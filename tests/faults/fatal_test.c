/*
 * Misuse: one line on stderr that names fault, pointer, class and thread, then abort. One child process per
 * bug. Built on the hak_ names and on the libc names.
 */
#include "cases.h"
#include "check.h"
#include "family.h"

#include <sys/resource.h>

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_free_at_once),
        cmocka_unit_test(double_free_with_another_between),
        cmocka_unit_test(double_free_of_large_blocks),
        cmocka_unit_test(double_free_of_huge_blocks),
        cmocka_unit_test(double_free_by_another_thread),
        cmocka_unit_test(double_free_of_another_threads_block),
        cmocka_unit_test(double_free_after_realloc),
        cmocka_unit_test(realloc_of_a_freed_block),
        cmocka_unit_test(free_inside_a_small_block),
        cmocka_unit_test(free_inside_a_large_block),
        cmocka_unit_test(free_of_misaligned_addresses),
        cmocka_unit_test(free_of_foreign_memory),
        cmocka_unit_test(free_of_weird_values),
        cmocka_unit_test(free_of_random_values),
        cmocka_unit_test(free_near_live_blocks_never_faults),
        cmocka_unit_test(realloc_and_usable_size_of_weird_values),
        cmocka_unit_test(free_by_too_large_a_size),
    };
    family_require_hakmem();
    const struct rlimit no_core = {0, 0}; /* hundreds of children abort */
    CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
    return cmocka_run_group_tests_name(family.name, tests, NULL, NULL);
}
