/*
 * How much a test does and what it tolerates, by build: the sanitizers are slow and keep shadow memory. The
 * numbers are compile definitions from tests/CMakeLists.txt.
 */
#ifndef HAK_TEST_SCALE_H
#define HAK_TEST_SCALE_H

#include <stddef.h>

/* A number of repetitions, given for the release build. */
static inline size_t scaled_work(size_t repetitions)
{
    return repetitions * HAK_TEST_WORK_PERCENT / 100;
}

/* A bound on resident memory, given for the release build. */
static inline size_t scaled_rss(size_t bytes)
{
    return bytes * HAK_TEST_RSS_FACTOR;
}

#endif
