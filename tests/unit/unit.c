#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "child.h"
#include "heap/events.h"

/* No samples but those that a test asks for. */
static void run_case(uintptr_t test)
{
    heap_events = (struct heap_events){0};
    ((const struct unit_case *)test)->run();
}

void unit_run(void **state)
{
    const struct unit_case *test = *state;
    struct child child = child_run(run_case, (uintptr_t)test);
    if (child.status != 0 || child.output[0] != '\0')
        print_error("child ended with status 0x%x\n%s", (unsigned)child.status, child.output);
    assert_int_equal(child.status, 0);
    assert_string_equal(child.output, "");
}

int unit_dies(void (*action)(uintptr_t value), uintptr_t value, const char *line)
{
    struct child child = child_run(action, value);
    return child_died_saying(&child, line);
}

int unit_says(void (*action)(uintptr_t value), uintptr_t value, const char *text)
{
    struct child child = child_run(action, value);
    if (child.status == 0 && strcmp(child.output, text) == 0)
        return 1;
    fprintf(stderr, "child ended with status 0x%x\n  wanted: %s\n  found:  %s\n", (unsigned)child.status, text,
            child.output);
    return 0;
}
