/* For tests of huge pages: the passes over all superslabs, by a clock that the tests set. */
#ifndef HAK_TEST_HUGES_H
#define HAK_TEST_HUGES_H

#include "fake_os.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/shards.h"
#include "unit.h"

enum { PASS_MS = 250, START_MS = 5000, LOOKS = 14, PAGE_UNITS = HUGE_SUPERSLABS * SUPERSLAB_UNITS };

static uint64_t now_ms;

/* Pages of the size that is this machine's are the only ones that are ever huge. */
static inline void needs_huge_pages(void **state)
{
    if (os_huge_page_size() != HUGE_SIZE)
        skip();
    unit_run(state);
}

static inline void start_clock(void)
{
    now_ms = START_MS;
    fake_clock_set(now_ms);
}

/* In each as many looks as there are pages that may become huge. */
static inline void passes(unsigned count)
{
    for (; count > 0; count--) {
        now_ms += PASS_MS;
        for (unsigned looks = 0; looks < LOOKS; looks++)
            huge_consider(now_ms + looks);
    }
}

#define HUGE_TEST(function) {#function, needs_huge_pages, NULL, NULL, &(struct unit_case){function}}

#endif
