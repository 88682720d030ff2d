/*
 * Runs counted in grains, for tests of the span layer: a grain is a unit, or as many units as a page covers where
 * pages are larger. So the tests are the same for every page size.
 *
 * Any thread takes and gives; only one marks.
 */
#ifndef HAK_TEST_GRAINS_H
#define HAK_TEST_GRAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Known once grains_init has run. */
extern size_t grain_bytes;
extern size_t superslab_grains; /* in one superslab */

/* Makes the arena; first of all, once a process. */
void grains_init(void);

/* As span_take, span_give and span_extend. */
char *grains_take(size_t grains, size_t align, bool *zero);
void grains_give(char *at, size_t grains, bool dirty);
bool grains_extend(char *end, size_t grains, bool *zero);

/* A run of any alignment and content, which must not be refused. */
char *grains_take_any(size_t grains);

/* span_abandon, of grains that are marked as taken: they stay marked, so that nobody may get them, but do not count. */
void grains_abandon(size_t grains);

/* The limit that is reached with so many grains and the metadata of now. */
size_t grains_as_limit(size_t grains);

/* Index of the grain at `at`, counted from the range's base. */
size_t grain_of(const char *at);

/* Notes that a run is taken, or is not any more; each grain of it must change. */
void grains_mark_taken(const char *at, size_t grains, bool now);

/* How many are marked and count. */
size_t grains_taken(void);

/* Checks that the span layer has as much in use as is marked, and that its sums fit together. */
void grains_check_stats(void);

/* Writes `word` to both ends of each grain and once within. */
void grains_write_words(char *at, size_t grains, uint64_t word);

/* Checks that `word` is there. */
void grains_check_words(const char *at, size_t grains, uint64_t word);

#endif
