#include "os/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "base/fmt.h"
#include "os/kernel.h"
#include "os/os.h"

/* What is static here saves some KiB of a stack that may be small. */
enum { TEXT_MOST = 4096 };

struct reader {
    int file;
    size_t begin; /* of what has been read and not yet looked at */
    size_t end;
    bool overlong; /* the line at `begin` does not fit, and this is the rest of it */
    char text[TEXT_MOST];
};

static struct reader reader;

static int open_file(const char *path)
{
    return (int)kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0);
}

static void close_file(int file)
{
    (void)kernel(SYS_close, file, 0, 0, 0, 0);
}

/* Bytes read, 0 at the end or after an error. */
static size_t read_file(int file, char *to, size_t most)
{
    long got = kernel(SYS_read, file, (long)to, (long)most, 0, 0);
    return is_error(got) ? 0 : (size_t)got;
}

static bool open_lines(const char *path)
{
    reader.file = open_file(path);
    reader.begin = reader.end = 0;
    reader.overlong = false;
    return reader.file >= 0;
}

static bool read_more(void)
{
    if (reader.begin == 0 && reader.end == TEXT_MOST) {
        reader.overlong = true;
        reader.begin = TEXT_MOST;
    }
    memmove(reader.text, reader.text + reader.begin, reader.end - reader.begin);
    reader.end -= reader.begin;
    reader.begin = 0;
    size_t got = read_file(reader.file, reader.text + reader.end, TEXT_MOST - reader.end);
    reader.end += got;
    return got > 0;
}

/* The next line without its end; NULL after the last. Lines that do not fit are left out: ours do. */
static char *next_line(void)
{
    for (;;) {
        char *line = reader.text + reader.begin;
        char *end = memchr(line, '\n', reader.end - reader.begin);
        if (end == NULL) {
            if (!read_more())
                return NULL;
            continue;
        }
        *end = '\0';
        reader.begin = (size_t)(end + 1 - reader.text);
        if (!reader.overlong)
            return line;
        reader.overlong = false;
    }
}

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
    if (!copy(file, top, "/proc/self/cgroup") || !open_lines(file))
        return;
    for (const char *line, *path; group[0] == '\0' && (line = next_line()) != NULL;)
        if (cgroup_parse_membership(line, &path) == version)
            (void)copy(group, path, "");
    close_file(reader.file);
}

/* The directory where a group lies, *least the length of its hierarchy's part. A group that no mount shows lies above
 * what is mounted, and that is the nearest to be had. False: nothing is mounted. */
static bool find_directory(const char *top, enum cgroup_version version, const char *group, char directory[TEXT_MOST],
                           size_t *least)
{
    const char *below = NULL;
    struct cgroup_mount mount;
    *least = 0;
    if (!copy(directory, top, "/proc/self/mountinfo") || !open_lines(directory))
        return false;
    for (char *line; below == NULL && (line = next_line()) != NULL;) {
        if (cgroup_parse_mount(line, &mount) != version)
            continue;
        below = cgroup_below(group, mount.root);
        if ((below == NULL && *least != 0) || !copy(directory, top, mount.point))
            continue;
        *least = strlen(directory);
        if (below != NULL && *least + strlen(below) < TEXT_MOST)
            memcpy(directory + *least, below, strlen(below) + 1);
    }
    close_file(reader.file);
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
    int file = copy(path, directory, name) ? open_file(path) : -1;
    if (file < 0)
        return SIZE_MAX;
    text[read_file(file, text, sizeof text - 1)] = '\0';
    close_file(file);
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
