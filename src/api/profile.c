/* The heap profiler, under its hak_ names. */
#include "hakmem.h"

#include <errno.h>

#include "heap/door.h"
#include "observe/profile.h"
#include "observe/profile_dump.h"

int hak_profile_start(size_t bytes)
{
    return door_open() ? profile_start(bytes) : ENOMEM;
}

int hak_profile_stop(void)
{
    return profile_stop();
}

int hak_profile_dump(const char *path)
{
    return path != NULL ? profile_dump(path) : EINVAL;
}
