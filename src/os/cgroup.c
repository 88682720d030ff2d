#include "os/cgroup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/fmt.h"
#include "base/kernel.h"
#include "os/lines.h"
#include "os/os.h"
#include "os/tasks.h"

enum { TEXT_MOST = LINES_TEXT_MOST };

/* What is static here saves some KiB of a stack that may be small. Of each controller: they are looked up at different times, by
 * any thread. */
struct search {
    enum cgroup_controller what;
    const char *top;
    bool refused; /* a file was, for want of what may be had later */
    size_t least; /* length of the hierarchy's part of `directory` */
    struct lines lines;
    char file[TEXT_MOST];
    char group[TEXT_MOST];
    char directory[TEXT_MOST];
    char text[64];
};

/* False: it does not fit. */
static bool copy(char to[TEXT_MOST], const char *first, const char *second)
{
    if (strlen(first) + strlen(second) >= TEXT_MOST)
        return false;
    fmt_print(to, TEXT_MOST, "%s%s", first, second);
    return true;
}

/* Of what file_open has returned. */
static void note_refusal(struct search *search, int file)
{
    search->refused |= file == -EMFILE || file == -ENFILE || file == -ENOMEM;
}

/* Opens a file of `search->top`'s, to be read by lines. */
static bool open_lines(struct search *search, const char *path)
{
    if (!copy(search->file, search->top, path))
        return false;
    bool opened = lines_open(&search->lines, search->file);
    note_refusal(search, search->lines.file);
    return opened;
}

/* The path of the process's group, in the hierarchy that is asked for. False: it is in none. */
static bool find_group(struct search *search, enum cgroup_version version)
{
    search->group[0] = '\0';
    if (!open_lines(search, "/proc/self/cgroup"))
        return false;
    for (const char *line, *path; search->group[0] == '\0' && (line = lines_next(&search->lines)) != NULL;)
        if (cgroup_parse_membership(line, search->what, &path) == version)
            (void)copy(search->group, path, "");
    lines_close(&search->lines);
    return search->group[0] != '\0';
}

/* The directory where a group lies. A group that no mount shows lies above what is mounted, and that is the nearest to be had.
 * False: nothing is mounted. */
static bool find_directory(struct search *search, enum cgroup_version version)
{
    const char *below = NULL;
    struct cgroup_mount mount;
    search->least = 0;
    if (!open_lines(search, "/proc/self/mountinfo"))
        return false;
    for (char *line; below == NULL && (line = lines_next(&search->lines)) != NULL;) {
        if (cgroup_parse_mount(line, search->what, &mount) != version)
            continue;
        below = cgroup_below(search->group, mount.root);
        if ((below == NULL && search->least != 0) || !copy(search->directory, search->top, mount.point))
            continue;
        search->least = strlen(search->directory);
        if (below != NULL && search->least + strlen(below) < TEXT_MOST)
            memcpy(search->directory + search->least, below, strlen(below) + 1);
    }
    lines_close(&search->lines);
    return search->least != 0;
}

/* Without a mountinfo: where it is mounted everywhere. */
static bool guess_directory(struct search *search, enum cgroup_version version)
{
    static const char usual[CGROUP_CONTROLLERS][CGROUP_VERSIONS][22] = {
        [CGROUP_MEMORY] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"},
        [CGROUP_CPU] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"},
    };
    const char *below = cgroup_below(search->group, "/");
    if (!copy(search->file, search->top, usual[search->what][version])
        || !copy(search->directory, search->file, below != NULL ? below : ""))
        return false;
    search->least = strlen(search->file);
    return true;
}

/* What a file in the directory says, with no end of line; "": there is none. */
static const char *text_of(struct search *search, const char *name)
{
    int file = copy(search->file, search->directory, name) ? file_open(search->file) : -1;
    search->text[0] = '\0';
    note_refusal(search, file);
    if (file < 0)
        return search->text;
    search->text[file_read(file, search->text, sizeof search->text - 1)] = '\0';
    file_close(file);
    search->text[strcspn(search->text, "\n")] = '\0';
    return search->text;
}

static size_t memory_here(struct search *search, enum cgroup_version version)
{
    if (version == CGROUP_V1)
        return cgroup_parse_limit(text_of(search, "/memory.limit_in_bytes"));
    size_t most = cgroup_parse_limit(text_of(search, "/memory.max"));
    return min_size(most, cgroup_parse_limit(text_of(search, "/memory.high")));
}

static size_t processors_here(struct search *search, enum cgroup_version version)
{
    char both[2 * sizeof search->text];
    if (version == CGROUP_V2)
        return cgroup_parse_processors(text_of(search, "/cpu.max"));
    size_t length = strlen(text_of(search, "/cpu.cfs_quota_us"));
    memcpy(both, search->text, length);
    fmt_print(both + length, sizeof both - length, " %s", text_of(search, "/cpu.cfs_period_us"));
    return cgroup_parse_processors(both);
}

/* The lowest limit of the directory and those above it, up to the hierarchy's. */
static size_t lowest_limit(struct search *search, enum cgroup_version version)
{
    size_t limit = SIZE_MAX;
    for (;;) {
        size_t here = search->what == CGROUP_MEMORY ? memory_here(search, version) : processors_here(search, version);
        limit = min_size(limit, here);
        char *last = strrchr(search->directory + search->least, '/');
        if (last == NULL)
            return limit;
        *last = '\0';
    }
}

size_t cgroup_limit(const char *top, enum cgroup_controller what)
{
    static struct search searches[CGROUP_CONTROLLERS];
    struct search *search = &searches[what];
    size_t limit = SIZE_MAX;
    search->what = what;
    search->top = top;
    search->refused = false;
    for (enum cgroup_version version = 0; version < CGROUP_VERSIONS; version++)
        if (find_group(search, version) && (find_directory(search, version) || guess_directory(search, version)))
            limit = min_size(limit, lowest_limit(search, version));
    return search->refused ? 0 : max_size(limit, 1);
}

size_t os_memory_limit(void)
{
    return cgroup_limit("", CGROUP_MEMORY);
}

/* As many as there may be in a kernel's mask. */
enum { PROCESSORS_MOST = 8192 };

struct processors {
    uint64_t allowed[PROCESSORS_MOST / 64];
};

static void allow(struct processors *all, long task)
{
    struct processors of = {{0}};
    if (is_error(kernel(SYS_sched_getaffinity, task, (long)sizeof of, (long)&of, 0, 0)))
        return;
    for (size_t i = 0; i < sizeof of.allowed / sizeof of.allowed[0]; i++)
        all->allowed[i] |= of.allowed[i];
}

static void allow_task(const char *task, void *all)
{
    long number = 0;
    for (; *task >= '0' && *task <= '9'; task++)
        number = number * 10 + (*task - '0');
    allow(all, number);
}

/* A program may bind each thread to a processor of its own: what one of them may use says little. */
static size_t processors_allowed(void)
{
    struct processors all = {{0}};
    size_t count = 0;
    allow(&all, 0);
    os_each_task(allow_task, &all);
    for (size_t i = 0; i < sizeof all.allowed / sizeof all.allowed[0]; i++)
        count += count_ones64(all.allowed[i]);
    return count != 0 ? count : SIZE_MAX;
}

size_t os_processors(void)
{
    size_t group = cgroup_limit("", CGROUP_CPU);
    return min_size(processors_allowed(), group != 0 ? group : SIZE_MAX);
}
