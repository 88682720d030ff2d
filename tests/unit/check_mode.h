/* Check mode, as its tests begin it and look at its blocks. */
#ifndef HAK_TEST_CHECK_MODE_H
#define HAK_TEST_CHECK_MODE_H

#include <stdbool.h>
#include <stddef.h>

#include "check/check.h"
#include "check/run.h"
#include "config/policy.h"

static inline void start(unsigned checks)
{
    policy.checks = checks;
    check_start();
}

static inline bool is_checked(const void *p)
{
    const struct checked *block = run_find(p);
    return block != NULL && block->state == CHECKED_LIVE && checked_start(block) == p;
}

#endif
