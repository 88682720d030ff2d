/* os/cgroup.h: what the texts of the files say. */
#include "unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "os/cgroup.h"
#include "random.h"
#include "scale.h"

static void check_membership(const char *line, enum cgroup_version version, const char *path)
{
    const char *found = NULL;
    CHECK(cgroup_parse_membership(line, CGROUP_MEMORY, &found) == version);
    if (version != CGROUP_NONE)
        CHECK(strcmp(found, path) == 0);
}

static void membership_lines(void)
{
    check_membership("0::/", CGROUP_V2, "/");
    check_membership("0::/user.slice/a:b", CGROUP_V2, "/user.slice/a:b");
    check_membership("4:memory:/", CGROUP_V1, "/");
    check_membership("12:cpu,memory:/a b/c", CGROUP_V1, "/a b/c");
    check_membership("12:memory,cpu:/x", CGROUP_V1, "/x");
    check_membership("3:cpu:/memory:/x", CGROUP_NONE, NULL);
    check_membership("3:memoryx,xmemory:/", CGROUP_NONE, NULL);
    check_membership("1:name=systemd:/", CGROUP_NONE, NULL);
    check_membership("1:name=memory:/", CGROUP_NONE, NULL);
    check_membership("10::/", CGROUP_NONE, NULL);
    static const char *const garbage[] = {"", ":", "::", ":::", "0:", "0::", "0::x", "0:/", "memory", "4:memory", "4:memory:",
                                          "4:memory:x", "4:,:/", "4:,,,:/"};
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        check_membership(garbage[i], CGROUP_NONE, NULL);
}

static void check_mount(const char *text, enum cgroup_version version, const char *root, const char *point)
{
    char line[1000];
    struct cgroup_mount mount = {NULL, NULL};
    CHECK(snprintf(line, sizeof line, "%s", text) < (int)sizeof line);
    CHECK(cgroup_parse_mount(line, CGROUP_MEMORY, &mount) == version);
    if (version != CGROUP_NONE)
        CHECK(strcmp(mount.root, root) == 0 && strcmp(mount.point, point) == 0);
}

static void mount_lines(void)
{
    check_mount("35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory", CGROUP_V1, "/",
                "/sys/fs/cgroup/memory");
    check_mount("35 31 0:32 /docker/1 /m rw shared:9 master:1 - cgroup none rw,cpu,memory,x", CGROUP_V1, "/docker/1", "/m");
    check_mount("30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate", CGROUP_V2, "/",
                "/sys/fs/cgroup");
    check_mount("30 23 0:26 /a\\040b /c\\011d\\134e\\8\\04 rw - cgroup2 cgroup2 rw", CGROUP_V2, "/a b", "/c\td\\e\\8\\04");
    check_mount("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", CGROUP_NONE, NULL, NULL);
    check_mount("32 31 0:29 / /sys/fs/cgroup/x rw - cgroup cgroup rw,xmemory,memoryx", CGROUP_NONE, NULL, NULL);
    check_mount("32 31 0:29 / /sys/fs/cgroup/memory rw - cgroupx cgroup rw,memory", CGROUP_NONE, NULL, NULL);
    check_mount("22 1 8:1 / /memory rw - ext4 /dev/memory rw,memory", CGROUP_NONE, NULL, NULL);
    static const char *const garbage[] = {"", " ", " - ", " -  - ", "- cgroup2", "a - cgroup2 b c", "1 2 3 4 - cgroup2 cgroup2 rw",
                                          "1 2 3 / /x rw - ", "1 2 3 / /x rw - cgroup2", "1 2 3 / /x rw - cgroup2 a",
                                          "1 2 3 x /x rw - cgroup2 a rw", "1 2 3 / x rw - cgroup2 a rw",
                                          "1 2 3 / /x rw cgroup2 cgroup2 rw"};
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        check_mount(garbage[i], CGROUP_NONE, NULL, NULL);
}

static void check_below(const char *path, const char *root, const char *wanted)
{
    const char *found = cgroup_below(path, root);
    CHECK((found == NULL) == (wanted == NULL));
    CHECK(wanted == NULL || strcmp(found, wanted) == 0);
}

static void groups_below_the_mounted_one(void)
{
    check_below("/", "/", "");
    check_below("/a/b", "/", "/a/b");
    check_below("/a/b", "/a", "/b");
    check_below("/a/b", "/a/b", "");
    check_below("/a/b/", "/a/b", "");
    check_below("/ab", "/a", NULL);
    check_below("/", "/a", NULL);
    check_below("/b", "/a", NULL);
    check_below("/../b", "/", NULL);
    check_below("/a/../../b", "/a", NULL);
}

static void limit_texts(void)
{
    CHECK(cgroup_parse_limit("0\n") == 0);
    CHECK(cgroup_parse_limit("1") == 1);
    CHECK(cgroup_parse_limit("67108864\n") == 64 * MIB);
    CHECK(cgroup_parse_limit("1152921504606846976\n") == (size_t)1 << 60);
    static const char *const none[] = {"max\n", "max", "", "\n", "9223372036854771712\n", "9223372036854710272\n",
                                       "18446744073709551617\n", "99999999999999999999999999", "-1\n", "1x\n", "12 34\n",
                                       " 1\n", "0x10\n", "1152921504606846977\n"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK(cgroup_parse_limit(none[i]) == SIZE_MAX);
}

static void processor_texts(void)
{
    CHECK(cgroup_parse_processors("100000 100000\n") == 1);
    CHECK(cgroup_parse_processors("150000 100000") == 2);
    CHECK(cgroup_parse_processors("400000 100000\n") == 4);
    CHECK(cgroup_parse_processors("1000 100000\n") == 1);
    CHECK(cgroup_parse_processors("0 100000\n") == 1);
    static const char *const none[] = {"max 100000\n", "-1 100000", "", " ", "\n", "100000", "100000 ", "100000 0", "100000  1",
                                       "1 x", "1 1x", "1 -1", "1\n1", " 100000", "9223372036854771712 1", "1 9223372036854771712"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK(cgroup_parse_processors(none[i]) == SIZE_MAX);
    const char *path;
    CHECK(cgroup_parse_membership("2:cpu,cpuacct:/a", CGROUP_CPU, &path) == CGROUP_V1 && strcmp(path, "/a") == 0);
    CHECK(cgroup_parse_membership("2:cpuset:/a", CGROUP_CPU, &path) == CGROUP_NONE);
    CHECK(cgroup_parse_membership("0::/a", CGROUP_CPU, &path) == CGROUP_V2);
}

/* Whatever is there, nothing is read beyond the text's end (the sanitizers look), and "none" is the answer to most. */
static void any_text(void)
{
    static const char *const pieces[] = {"0::", "4:memory:", ":", "/", "..", " ", " - ", "cgroup2", "cgroup", "memory", ",",
                                         "\\040", "\\", "1", "max", "\n", "\377", "a"};
    uint64_t seed = 31;
    for (size_t i = 0; i < scaled_work(100000); i++) {
        char made[200] = "";
        for (uint64_t n = random_below(&seed, 12); n > 0; n--)
            strcat(made, pieces[random_below(&seed, sizeof pieces / sizeof pieces[0])]);
        char *text = strdup(made); /* on the heap, without room behind it */
        const char *path = NULL;
        struct cgroup_mount mount = {NULL, NULL};
        CHECK(cgroup_parse_membership(text, CGROUP_CPU, &path) == CGROUP_NONE || path[0] == '/');
        (void)cgroup_parse_limit(text);
        (void)cgroup_parse_processors(text);
        (void)cgroup_below(text, "/a");
        CHECK(cgroup_parse_mount(text, CGROUP_CPU, &mount) == CGROUP_NONE || (mount.root[0] == '/' && mount.point[0] == '/'));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(membership_lines),
        UNIT_TEST(mount_lines),
        UNIT_TEST(groups_below_the_mounted_one),
        UNIT_TEST(limit_texts),
        UNIT_TEST(processor_texts),
        UNIT_TEST(any_text),
    };
    return cmocka_run_group_tests_name("cgroup_text", tests, NULL, NULL);
}
