#include "config/paths.h"

#include <string.h>

static char paths[PATHS][PATH_MOST];

bool path_set(enum path which, const char *path)
{
    size_t length = strlen(path);
    if (path[0] != '/' || length >= PATH_MOST)
        return false;
    memcpy(paths[which], path, length + 1);
    return true;
}

const char *path_of(enum path which)
{
    return paths[which];
}
