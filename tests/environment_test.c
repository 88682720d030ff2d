/*
 * Options in the environment: what is wrong gives one line, and the default. This program runs itself again,
 * since the environment is read once. The core alone, with its hak_ names, reads none.
 */
#include "child.h"
#include "family.h"
#include "process.h"

/* cmocka.h needs some of these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *environment_program; /* argv[0] */

static const char *assignment; /* NAME=VALUE for the next child; NULL: none */

static void run_with_assignment(uintptr_t value)
{
    (void)value;
    unsetenv("HAKMEM_MODE");
    if (assignment != NULL) {
        putenv((char *)(uintptr_t)assignment);
    }
    process_become(environment_program, "--allocate");
    _exit(3);
}

static struct child run(const char *name_and_value)
{
    assignment = name_and_value;
    return child_run(run_with_assignment, 0);
}

static void assert_warns(const char *name_and_value, const char *line)
{
    const struct child child = run(name_and_value);
    assert_int_equal(child.status, 0);
    regex_t regex;
    assert_int_equal(regcomp(&regex, line, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, child.output, 0, NULL, 0) != 0) {
        fail_msg("wanted %s, found %s", line, child.output);
    }
    regfree(&regex);
    const char *newline = strchr(child.output, '\n');
    assert_non_null(newline);
    assert_int_equal(newline[1], '\0');
}

static void bad_mode_warns_once(void **state)
{
    (void)state;
    assert_warns("HAKMEM_MODE=nonsense",
                 "^hakmem: warning: HAKMEM_MODE=nonsense: legal values are .*balanced.*; using balanced\n$");
    assert_warns("HAKMEM_MODE=", "^hakmem: warning: HAKMEM_MODE=: legal values are .*balanced.*; using balanced\n$");
}

static void bad_purge_warns_once(void **state)
{
    (void)state;
    assert_warns("HAKMEM_PURGE=delay=soon", "^hakmem: warning: HAKMEM_PURGE=delay=soon: legal values are .*; using .*\n$");
    assert_warns("HAKMEM_PURGE=delay=99999999999999999999",
                 "^hakmem: warning: HAKMEM_PURGE=delay=99999999999999999999: legal values are .*; using .*\n$");
}

static void bad_limit_warns_once(void **state)
{
    (void)state;
    assert_warns("HAKMEM_LIMIT=much", "^hakmem: warning: HAKMEM_LIMIT=much: legal values are .*SOFT:HARD.*; using .*\n$");
    assert_warns("HAKMEM_LIMIT=2G:1G", "^hakmem: warning: HAKMEM_LIMIT=2G:1G: legal values are .*SOFT:HARD.*; using .*\n$");
}

static void unknown_option_warns_once(void **state)
{
    (void)state;
    assert_warns("HAKMEM_NONSENSE=1", "^hakmem: warning: HAKMEM_NONSENSE=1: .*\n$");
}

static void good_mode_is_silent(void **state)
{
    (void)state;
    static const char *const good[] = {
        NULL, "HAKMEM_MODE=balanced", "HAKMEM_MODE=minimal", "HAKMEM_MODE=fast", "HAKMEM_PURGE=delay=0",
        "HAKMEM_LIMIT=1G", "HAKMEM_LIMIT=64M:2T",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct child child = run(good[i]);
        assert_int_equal(child.status, 0);
        assert_string_equal(child.output, "");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--allocate") == 0) {
        family.free(family.malloc(100));
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_mode_warns_once),
        cmocka_unit_test(bad_purge_warns_once),
        cmocka_unit_test(bad_limit_warns_once),
        cmocka_unit_test(unknown_option_warns_once),
        cmocka_unit_test(good_mode_is_silent),
    };
    family_require_hakmem();
    environment_program = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
