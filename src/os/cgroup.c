#include "os/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/fmt.h"
#include "os/lines.h"
#include "os/os.h"

/* What is static here saves some KiB of a stack that may be small. */
enum { TEXT_MOST = LINES_TEXT_MOST };

static struct lines lines;

/* False: it does not fit. */
static bool copy(char to[TEXT_MOST], const char *first, const char *second)
{
    if (strlen(first) + strlen(second) >= TEXT_MOST)
        return false;
    fmt_print(to, TEXT_MOST, "%s%s", first, second);
    return true;
}

/* The path of the process's group, in the hierarchy that is asked for; "": it is in none. */
static void find_group(const char *top, enum cgroup_version version, char group[TEXT_MOST])
{
    static char file[TEXT_MOST];
    group[0] = '\0';
    if (!copy(file, top, "/proc/self/cgroup") || !lines_open(&lines, file))
        return;
    for (const char *line, *path; group[0] == '\0' && (line = lines_next(&lines)) != NULL;)
        if (cgroup_parse_membership(line, &path) == version)
            (void)copy(group, path, "");
    lines_close(&lines);
}

/* The directory where a group lies, *least the length of its hierarchy's part. A group that no mount shows lies above
 * what is mounted, and that is the nearest to be had. False: nothing is mounted. */
static bool find_directory(const char *top, enum cgroup_version version, const char *group, char directory[TEXT_MOST],
                           size_t *least)
{
    const char *below = NULL;
    struct cgroup_mount mount;
    *least = 0;
    if (!copy(directory, top, "/proc/self/mountinfo") || !lines_open(&lines, directory))
        return false;
    for (char *line; below == NULL && (line = lines_next(&lines)) != NULL;) {
        if (cgroup_parse_mount(line, &mount) != version)
            continue;
        below = cgroup_below(group, mount.root);
        if ((below == NULL && *least != 0) || !copy(directory, top, mount.point))
            continue;
        *least = strlen(directory);
        if (below != NULL && *least + strlen(below) < TEXT_MOST)
            memcpy(directory + *least, below, strlen(below) + 1);
    }
    lines_close(&lines);
    return *least != 0;
}

/* Without a mountinfo: where it is mounted everywhere. */
static bool guess_directory(const char *top, const char *usual, const char *group, char directory[TEXT_MOST],
                            size_t *least)
{
    static char hierarchy[TEXT_MOST];
    const char *below = cgroup_below(group, "/");
    if (!copy(hierarchy, top, usual) || !copy(directory, hierarchy, below != NULL ? below : ""))
        return false;
    *least = strlen(hierarchy);
    return true;
}

static size_t limit_in(const char *directory, const char *name)
{
    static char path[TEXT_MOST];
    char text[32];
    int file = copy(path, directory, name) ? file_open(path) : -1;
    if (file < 0)
        return SIZE_MAX;
    text[file_read(file, text, sizeof text - 1)] = '\0';
    file_close(file);
    return cgroup_parse_limit(text);
}

/* The lowest limit of the directory and those above it, up to the hierarchy's. */
static size_t lowest_limit(enum cgroup_version version, char *directory, size_t least)
{
    size_t limit = SIZE_MAX;
    for (;;) {
        if (version == CGROUP_V1) {
            limit = min_size(limit, limit_in(directory, "/memory.limit_in_bytes"));
        } else {
            limit = min_size(limit, limit_in(directory, "/memory.max"));
            limit = min_size(limit, limit_in(directory, "/memory.high"));
        }
        char *last = strrchr(directory + least, '/');
        if (last == NULL)
            return limit;
        *last = '\0';
    }
}

size_t cgroup_memory_limit(const char *top)
{
    static const char *const usual[CGROUP_VERSIONS] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static char group[TEXT_MOST];
    static char directory[TEXT_MOST];
    size_t limit = SIZE_MAX;
    for (enum cgroup_version version = 0; version < CGROUP_VERSIONS; version++) {
        size_t least = 0;
        find_group(top, version, group);
        if (group[0] == '\0')
            continue;
        if (find_directory(top, version, group, directory, &least)
            || guess_directory(top, usual[version], group, directory, &least))
            limit = min_size(limit, lowest_limit(version, directory, least));
    }
    return limit;
}

size_t os_memory_limit(void)
{
    return cgroup_memory_limit("");
}
