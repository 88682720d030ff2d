#include "api/remember.h"

#include "config/paths.h"
#include "config/policy.h"
#include "learn/policy_file.h"

/* Of what was loaded: what is learned now comes on top of it. */
static struct policy_evidence known;
static bool is_loaded;

void remember_start(void)
{
    const char *path = path_of(PATH_POLICY);
    if (path[0] != '\0')
        is_loaded = policy_file_load(path, policy.learn != LEARN_ON, &known);
}

bool remember_has(struct policy_evidence *evidence)
{
    *evidence = known;
    return is_loaded;
}
