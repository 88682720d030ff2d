/* Check mode, under its hak_ names. */
#include "hakmem.h"

#include <errno.h>

#include "base/atomic.h"
#include "check/check.h"
#include "check/crash.h"
#include "config/policy.h"
#include "heap/door.h"

int hak_check_start(void)
{
    static uint32_t asked;
    if (load_relaxed(&policy.checks) != 0)
        return EALREADY;
    if (!door_open())
        return ENOMEM;
    if (exchange_acquire(&asked, 1u) != 0)
        return EALREADY;
    store_relaxed(&policy.checks, (unsigned)CHECK_ALL);
    crash_start();
    check_start();
    return 0;
}

size_t hak_check(void)
{
    return check_all();
}
