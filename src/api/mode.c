/* Modes, under their hak_ name. */
#include "hakmem.h"

#include <errno.h>

#include "config/policy.h"
#include "learn/sites.h"

int hak_mode_set(const char *name)
{
    if (name == NULL || !policy_switch_mode(name))
        return EINVAL;
    sites_reset();
    return 0;
}
