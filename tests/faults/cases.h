/* The cases of fatal_test, written in the file named above each group. */
#ifndef HAK_TEST_FAULT_CASES_H
#define HAK_TEST_FAULT_CASES_H

/* cmocka.h needs some of these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * The lines the library writes, as extended regular expressions; the first %s stands for the pointer. All of
 * the wording that tests depend on is here.
 */
#define WHERE_SMALL "\\(class [0-9]+ B, thread [0-9]+\\)"
#define WHERE_LARGE "\\(large, ([0-9]+ B, )?thread [0-9]+\\)"
#define WHERE_UNKNOWN "\\(thread [0-9]+\\)"
#define WHERE_ANY "\\((class [0-9]+ B, |large, ([0-9]+ B, )?)?thread [0-9]+\\)"
#define DOUBLE_FREE_SMALL "hakmem: fatal: double free of %s " WHERE_SMALL
#define DOUBLE_FREE_LARGE "hakmem: fatal: double free of %s " WHERE_LARGE
#define INVALID_FREE_SMALL "hakmem: fatal: invalid free of %s " WHERE_SMALL
#define INVALID_FREE_ANY "hakmem: fatal: invalid free of %s " WHERE_ANY
#define INVALID_FREE_UNKNOWN "hakmem: fatal: invalid free of %s " WHERE_UNKNOWN
#define INVALID_USE_ANY "hakmem: fatal: invalid (free|use) of %s " WHERE_ANY
/* The slab or the cache may have been given up by then, and with it the knowledge of the class. */
#define USE_AFTER_FREE_SMALL "hakmem: fatal: use after free of %s " WHERE_SMALL
#define DOUBLE_FREE_ANY "hakmem: fatal: double free of %s " WHERE_ANY
#define WRONG_SIZE_ANY "hakmem: fatal: too large a size in free of %s " WHERE_ANY

/* double_free.c */
void double_free_at_once(void **state);
void double_free_with_another_between(void **state);
void double_free_of_large_blocks(void **state);
void double_free_of_huge_blocks(void **state);
void double_free_by_another_thread(void **state);
void double_free_of_another_threads_block(void **state);
void double_free_after_realloc(void **state);
void realloc_of_a_freed_block(void **state);

/* invalid_free.c */
void free_inside_a_small_block(void **state);
void free_inside_a_large_block(void **state);
void free_of_misaligned_addresses(void **state);
void free_of_foreign_memory(void **state);
void free_of_weird_values(void **state);
void free_of_random_values(void **state);
void free_near_live_blocks_never_faults(void **state);
void realloc_and_usable_size_of_weird_values(void **state);
void free_by_too_large_a_size(void **state);

#endif
