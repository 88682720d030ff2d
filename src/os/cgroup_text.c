#include "os/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"

/* v1 says "no limit" by the largest multiple of a page below 2^63. */
#define LIMIT_MOST ((size_t)1 << 60)

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static const char controllers[CGROUP_CONTROLLERS][7] = {[CGROUP_MEMORY] = "memory", [CGROUP_CPU] = "cpu"};

enum cgroup_version cgroup_parse_membership(const char *line, enum cgroup_controller what, const char **path)
{
    const char *controller = controllers[what];
    const char *list = strchr(line, ':');
    const char *end = list != NULL ? strchr(list + 1, ':') : NULL;
    if (end == NULL || end[1] != '/')
        return CGROUP_NONE;
    *path = end + 1;
    if (strncmp(line, "0::", 3) == 0)
        return CGROUP_V2;
    for (const char *at = list + 1; at < end; at++) {
        size_t length = strcspn(at, ",:");
        if (length == strlen(controller) && strncmp(at, controller, length) == 0)
            return CGROUP_V1;
        at += length;
    }
    return CGROUP_NONE;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* "\040" is a blank: blanks, tabs, newlines and backslashes are written so. */
static void unescape(char *text)
{
    char *to = text;
    while (*text != '\0') {
        if (text[0] == '\\' && is_octal(text[1]) && is_octal(text[2]) && is_octal(text[3])) {
            *to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
            text += 4;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}

/* Cuts the next word off; NULL if there is none. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " ");
    char *end = word + strcspn(word, " ");
    *rest = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return *word != '\0' ? word : NULL;
}

/* 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory */
enum cgroup_version cgroup_parse_mount(char *line, enum cgroup_controller what, struct cgroup_mount *mount)
{
    enum { ROOT = 3, POINT = 4, FIELDS };
    char *field[FIELDS];
    char *tail = strstr(line, " - ");
    if (tail == NULL)
        return CGROUP_NONE;
    *tail = '\0';
    tail += strlen(" - ");
    for (int i = 0; i < FIELDS; i++)
        if ((field[i] = next_word(&line)) == NULL)
            return CGROUP_NONE;
    const char *type = next_word(&tail);
    const char *source = next_word(&tail);
    const char *options = next_word(&tail);
    if (source == NULL || options == NULL || field[ROOT][0] != '/' || field[POINT][0] != '/')
        return CGROUP_NONE;
    unescape(field[ROOT]);
    unescape(field[POINT]);
    *mount = (struct cgroup_mount){field[ROOT], field[POINT]};
    if (strcmp(type, "cgroup2") == 0)
        return CGROUP_V2;
    return strcmp(type, "cgroup") == 0 && has_word(options, controllers[what]) ? CGROUP_V1 : CGROUP_NONE;
}

/* A path with ".." is that of a group outside of the namespace, which is not mounted here. */
const char *cgroup_below(const char *path, const char *root)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, length) != 0 || strstr(path, "/..") != NULL)
        return NULL;
    const char *below = path + length;
    if (below[0] != '\0' && below[0] != '/')
        return NULL;
    return below[0] == '/' && below[1] == '\0' ? "" : below;
}

/* *end is what follows the digits. SIZE_MAX: there are none, or the number is too large. */
static size_t parse_number(const char *text, const char **end)
{
    size_t value = 0;
    const char *at = text;
    *end = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (size_t)(*at - '0');
        if (value > LIMIT_MOST)
            return SIZE_MAX;
    }
    *end = at;
    return at > text ? value : SIZE_MAX;
}

static bool ends_line(const char *at)
{
    return *at == '\n' || *at == '\0';
}

size_t cgroup_parse_limit(const char *text)
{
    const char *end;
    size_t value = parse_number(text, &end);
    return ends_line(end) ? value : SIZE_MAX;
}

size_t cgroup_parse_processors(const char *text)
{
    const char *between;
    const char *end;
    size_t quota = parse_number(text, &between);
    if (quota == SIZE_MAX || *between != ' ')
        return SIZE_MAX;
    size_t period = parse_number(between + 1, &end);
    if (period == SIZE_MAX || period == 0 || !ends_line(end))
        return SIZE_MAX;
    return max_size(divide_up(quota, period), 1);
}
