#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *check_note = "";

void check_set_note(const char *note)
{
    check_note = note;
}

void check_skipped(const char *what, const char *reason)
{
    printf("[  SKIPPED ] %s: %s\n", what, reason);
    fflush(stdout);
}

void check_failed(const char *file, int line, const char *condition)
{
    char text[512];
    const int length = snprintf(text, sizeof text, "%s:%d: check failed: %s %s\n", file, line, condition, check_note);
    if (length > 0) {
        const size_t wanted = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
        const ssize_t written = write(STDERR_FILENO, text, wanted);
        (void)written; /* nothing better to do than to abort */
    }
    abort();
}
