/*
 * What the unit tests share. A test is a function without arguments that uses CHECK; it runs in a child
 * process of its own, so that each starts with an allocator that nobody has used yet, and the failure of one
 * leaves the others alone.
 */
#ifndef HAK_TEST_UNIT_H
#define HAK_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#undef fail /* base/fail.h has a function of this name */

#include "check.h"

struct unit_case {
    void (*run)(void);
};

/* An entry of cmocka's table of tests. */
#define UNIT_TEST(function) {#function, unit_run, NULL, NULL, &(struct unit_case){function}}

/* The test function of every entry: passes if the child ends well and writes nothing to stderr. */
void unit_run(void **state);

/* Checks that `action(value)`, in a child, writes exactly one line to stderr, which matches the extended regular
 * expression, and aborts. */
#define CHECK_DIES(action, value, line) CHECK(unit_dies((action), (uintptr_t)(value), (line)))
int unit_dies(void (*action)(uintptr_t value), uintptr_t value, const char *line);

/* Checks what `action(value)`, in a child that ends well, writes to stderr. */
#define CHECK_SAYS(action, value, text) CHECK(unit_says((action), (uintptr_t)(value), (text)))
int unit_says(void (*action)(uintptr_t value), uintptr_t value, const char *text);

#endif
