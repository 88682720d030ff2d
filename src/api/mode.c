/* Modes, under their hak_ name. */
#include "hakmem.h"

#include <errno.h>

#include "config/policy.h"

int hak_mode_set(const char *name)
{
    return name != NULL && policy_switch_mode(name) ? 0 : EINVAL;
}
