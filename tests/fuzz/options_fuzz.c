/* config/options.h: any environment. Each value is legal by a grammar of its own here, or gets one line of warning; and
 * values that are not legal change nothing. */
#include "config/options.h"

#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"
#include "config/policy.h"
#include "fuzz.h"
#include "policies.h"

enum { ENTRIES = 6, TEXT_MOST = 300, PATH_BYTES_MOST = 4096, LINE_MOST = 512 };

#define BYTES "([0-9]+)([KMGT]?)"
#define PURGE_ONE "(delay=[0-9]+|thread=(on|off)|huge=(auto|on|off))"
#define CHECKS_ONE "(free|redzone|poison|quarantine|leaks|stacks)"
#define PARTS_ONE "(bigcache|sites|classes|elo|evolution)"
#define TIB ((size_t)1 << 40)

/* ---- What is legal. */

enum name { MODE, LIMIT, PURGE, GUARD, CRASH, CHECKS, TRACE, PROFILE, STATS, LIVE, REPORT, LEARN, POLICY_FILE, NAMES };

static struct {
    const char *name;
    const char *grammar; /* POSIX extended regular expression */
    regex_t regex;
} options[NAMES] = {
    [MODE] = {.name = "HAKMEM_MODE=", .grammar = "^(minimal|fast|balanced|learning|research)$"},
    [LIMIT] = {.name = "HAKMEM_LIMIT=", .grammar = "^" BYTES "(:" BYTES ")?$"},
    [PURGE] = {.name = "HAKMEM_PURGE=", .grammar = "^" PURGE_ONE "(," PURGE_ONE ")*$"},
    [GUARD] = {.name = "HAKMEM_GUARD=", .grammar = "^" BYTES "(:([0-9]+))?$"},
    [CRASH] = {.name = "HAKMEM_CRASH=", .grammar = "^[01]$"},
    [CHECKS] = {.name = "HAKMEM_CHECK=", .grammar = "^([01]|" CHECKS_ONE "(," CHECKS_ONE ")*)$"},
    [TRACE] = {.name = "HAKMEM_TRACE=", .grammar = "^(ptr:(heap[+])?0x[0-9a-f]{1,16}|class:([0-9]+)|route(:([0-9]+))?)(,/|$)"},
    [PROFILE] = {.name = "HAKMEM_PROFILE=", .grammar = "^" BYTES "(,/.*)?$"},
    [STATS] = {.name = "HAKMEM_STATS=", .grammar = "^(exit|(SIG)?(HUP|USR[12]|WINCH)|/.*)$"},
    [LIVE] = {.name = "HAKMEM_LIVE=", .grammar = "^/"},
    [REPORT] = {.name = "HAKMEM_REPORT=", .grammar = "^/"},
    [LEARN] = {.name = "HAKMEM_LEARN=", .grammar = "^(off|(observe|on)(:" PARTS_ONE "(," PARTS_ONE ")*)?)$"},
    [POLICY_FILE] = {.name = "HAKMEM_POLICY=", .grammar = "^/"},
};

enum { GROUPS = 7 };

static bool has_group(const regmatch_t *group)
{
    return group->rm_so >= 0;
}

/* The number in a group, and beyond 64 bits the largest. */
static size_t number_in(const char *text, const regmatch_t *group)
{
    return strtoull(text + group->rm_so, NULL, 10);
}

/* Two groups: digits and suffix. False: more than 64 bits. */
static bool read_bytes(const char *text, const regmatch_t *group, size_t *out)
{
    static const char suffixes[] = "KMGT";
    errno = 0;
    size_t number = number_in(text, group);
    bool fits = errno == 0;
    bool has_suffix = group[1].rm_eo > group[1].rm_so;
    unsigned shift = has_suffix ? 10 * (unsigned)(strchr(suffixes, text[group[1].rm_so]) - suffixes + 1) : 0;
    *out = number << shift;
    return fits && *out >> shift == number;
}

static bool is_limit(const char *text, const regmatch_t *group)
{
    size_t soft;
    size_t hard = 0;
    if (!read_bytes(text, &group[1], &soft) || (has_group(&group[3]) && !read_bytes(text, &group[4], &hard)))
        return false;
    return soft == 0 || soft == SIZE_MAX || hard == 0 || hard >= soft;
}

static bool is_guard(const char *text, const regmatch_t *group)
{
    size_t bytes;
    if (!read_bytes(text, &group[1], &bytes) || bytes > TIB)
        return false;
    size_t slots = has_group(&group[3]) ? number_in(text, &group[4]) : 1;
    return slots >= 1 && slots <= 1024;
}

static bool is_profile(const char *text, const regmatch_t *group)
{
    size_t bytes;
    const char *comma = strchr(text, ',');
    return read_bytes(text, &group[1], &bytes) && bytes <= TIB && (comma == NULL || strlen(comma + 1) < PATH_BYTES_MOST);
}

static bool is_purge(const char *text)
{
    static const char delay[] = "delay=";
    for (const char *at = text; (at = strstr(at, delay)) != NULL; at++)
        if (strtoull(at + strlen(delay), NULL, 10) > 24 * 60 * 60 * 1000)
            return false;
    return true;
}

static bool is_trace(const char *text, const regmatch_t *group)
{
    size_t class = has_group(&group[3]) ? number_in(text, &group[3]) : 1;
    size_t routes = has_group(&group[5]) ? number_in(text, &group[5]) : 1;
    const char *comma = strchr(text, ',');
    return class >= 1 && class <= 32768 && routes >= 1 && routes <= 1000000 && (comma == NULL || strlen(comma + 1) < PATH_BYTES_MOST);
}

static bool is_legal(enum name name, const char *value)
{
    regmatch_t group[GROUPS];
    if (regexec(&options[name].regex, value, GROUPS, group, 0) != 0)
        return false;
    switch (name) {
    case LIMIT:
        return is_limit(value, group);
    case GUARD:
        return is_guard(value, group);
    case PURGE:
        return is_purge(value);
    case TRACE:
        return is_trace(value, group);
    case PROFILE:
        return is_profile(value, group);
    case STATS:
    case LIVE:
    case REPORT:
    case POLICY_FILE:
        return strlen(value) < PATH_BYTES_MOST;
    default:
        return true;
    }
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Lines of warning that an entry gets. */
static unsigned warnings_for(const char *entry, bool *takes_effect)
{
    for (int name = 0; name < NAMES; name++) {
        if (begins_with(entry, options[name].name)) {
            bool legal = is_legal((enum name)name, entry + strlen(options[name].name));
            *takes_effect |= legal;
            return !legal;
        }
    }
    return begins_with(entry, "HAKMEM_") && !begins_with(entry, "HAKMEM_DISABLE=");
}

/* ---- What is said. */

static unsigned lines;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* Each warning is one write of one line, its end included. */
static bool is_warning(int file, const char *text, size_t bytes)
{
    static const char prefix[] = "hakmem: warning: HAKMEM_";
    if (file != STDERR_FILENO || bytes < sizeof prefix || memcmp(text, prefix, sizeof prefix - 1) != 0)
        return false;
    CHECK(bytes <= LINE_MOST && text[bytes - 1] == '\n');
    lines++;
    return true;
}

long __wrap_syscall(long number, ...)
{
    long a[6]; /* as many as the kernel takes, and libc's own reads */
    va_list given;
    va_start(given, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(given, long);
    va_end(given);
    const struct iovec *part = (const struct iovec *)a[1];
    if (number == SYS_writev && a[2] == 1 && is_warning((int)a[0], part->iov_base, part->iov_len))
        return (long)part->iov_len;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- The environment. */

/* An option's name and any value, or any text. */
static char *read_entry(struct input *input)
{
    uint8_t name = input_byte(input) % (NAMES + 2);
    char *value = input_text(input, TEXT_MOST);
    const char *prefix = name < NAMES ? options[name].name : name == NAMES ? "HAKMEM_" : "";
    char *entry = malloc(strlen(prefix) + strlen(value) + 1);
    CHECK(entry != NULL);
    strcpy(entry, prefix);
    strcat(entry, value);
    free(value);
    return entry;
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    for (int name = 0; name < NAMES; name++)
        CHECK(regcomp(&options[name].regex, options[name].grammar, REG_EXTENDED) == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    struct policy before = policy;
    char *environment[ENTRIES + 1] = {NULL};
    unsigned expected = 0;
    bool takes_effect = false;
    for (int i = 0; i < ENTRIES && input_has_more(&input); i++) {
        environment[i] = read_entry(&input);
        expected += warnings_for(environment[i], &takes_effect);
    }
    lines = 0;
    options_load(environment);
    CHECK(lines == expected);
    CHECK(takes_effect || policies_equal(policy, before));
    policy = before;
    for (int i = 0; i < ENTRIES; i++)
        free(environment[i]);
    return 0;
}
