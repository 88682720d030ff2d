/* Runs a function in a child process and tells how that ended and what it wrote to stderr. */
#ifndef HAK_TEST_CHILD_H
#define HAK_TEST_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct child {
    int status; /* as waitpid gives it; 0 when the function returned */
    char output[16384];
};

/* `action(value)` is run in the child; a hang ends in SIGALRM. */
struct child child_run(void (*action)(uintptr_t value), uintptr_t value);

/* Does a child that runs `action(value)` die of the signal, after it has written the text to stderr? "": whatever it writes. */
bool child_dies_of(int signal, void (*action)(uintptr_t value), uintptr_t value, const char *text);

/* True if the child aborted and wrote exactly one line, which matches the POSIX extended regular expression. */
bool child_died_saying(const struct child *child, const char *line);

#endif
