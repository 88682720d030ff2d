/* os/cgroup.h: any text in place of the kernel's. What is found lies in the text, and limits are read as strtoull does it. */
#include "os/cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fuzz.h"

enum { TEXT_MOST = 400 };

#define LIMIT_MOST ((size_t)1 << 60)

static size_t limit_of(const char *text)
{
    char *end;
    size_t value = strtoull(text, &end, 10);
    bool is_number = isdigit((unsigned char)text[0]) && (*end == '\n' || *end == '\0');
    return is_number && value <= LIMIT_MOST ? value : SIZE_MAX;
}

/* A number of digits, as limits are. */
static bool read_number(const char *text, size_t *value, char **end)
{
    errno = 0;
    *value = strtoull(text, end, 10);
    return isdigit((unsigned char)text[0]) && errno == 0 && *value <= LIMIT_MOST;
}

static size_t processors_of(const char *text)
{
    size_t quota;
    size_t period;
    char *end;
    if (!read_number(text, &quota, &end) || *end != ' ' || !read_number(end + 1, &period, &end) || period == 0)
        return SIZE_MAX;
    if (*end != '\n' && *end != '\0')
        return SIZE_MAX;
    size_t processors = quota / period + (quota % period != 0);
    return processors == 0 ? 1 : processors;
}

/* "N:LIST:/PATH". */
static void check_membership(const char *line, enum cgroup_controller what)
{
    const char *path = NULL;
    enum cgroup_version version = cgroup_parse_membership(line, what, &path);
    const char *first = strchr(line, ':');
    const char *second = first != NULL ? strchr(first + 1, ':') : NULL;
    bool has_path = second != NULL && second[1] == '/';
    CHECK(version == CGROUP_NONE || (has_path && path == second + 1));
    CHECK((version == CGROUP_V2) == (has_path && strncmp(line, "0::", 3) == 0));
    CHECK(version != CGROUP_V1 || strstr(line, what == CGROUP_MEMORY ? "memory" : "cpu") != NULL);
}

/* The parts are strings within what was the line, which becomes shorter. */
static void check_mount(char *line, enum cgroup_controller what)
{
    struct cgroup_mount mount = {NULL, NULL};
    const char *end = line + strlen(line);
    bool has_type = strstr(line, " - ") != NULL && strstr(line, "cgroup") != NULL;
    if (cgroup_parse_mount(line, what, &mount) == CGROUP_NONE)
        return;
    CHECK(has_type);
    CHECK(mount.root[0] == '/' && mount.root > line && mount.root + strlen(mount.root) < end);
    CHECK(mount.point[0] == '/' && mount.point > mount.root && mount.point + strlen(mount.point) < end);
}

static void check_below(const char *path, const char *root)
{
    size_t length = strlen(root);
    const char *below = cgroup_below(path, root);
    bool is_top = strcmp(root, "/") == 0;
    if (below == NULL || below[0] == '\0') {
        CHECK(below == NULL || is_top || strncmp(path, root, length) == 0);
        return;
    }
    CHECK(below[0] == '/' && below == path + (is_top ? 0 : length));
    CHECK(strstr(path, "/..") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    char *text = input_text(&input, TEXT_MOST);
    char *other = input_text(&input, TEXT_MOST);
    CHECK(cgroup_parse_limit(text) == limit_of(text));
    CHECK(cgroup_parse_processors(text) == processors_of(text));
    for (enum cgroup_controller what = 0; what < CGROUP_CONTROLLERS; what++)
        check_membership(text, what);
    check_below(text, other);
    check_mount(text, strlen(other) % CGROUP_CONTROLLERS);
    free(text);
    free(other);
    return 0;
}
