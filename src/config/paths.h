/* Files that the user has named. Set while options are read, before there are threads; absolute, for programs go elsewhere. */
#ifndef HAK_CONFIG_PATHS_H
#define HAK_CONFIG_PATHS_H

#include <stdbool.h>

#include "base/compiler.h"

enum { PATH_MOST = 4096 };

enum path {
    PATH_STATS, /* of a series of statistics */
    PATH_LIVE,  /* of the directory with the live pages */
    PATH_PROFILE, /* of the profile at the end, %p in it being the process's number */
    PATH_POLICY,  /* of what was learned (learn/policy_file.h) */
    PATHS,
};

/* False: the path is not absolute, or too long. */
bool path_set(enum path which, const char *path);

/* "" if there is none. */
const char *path_of(enum path which);

#endif
