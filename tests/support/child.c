#include "child.h"

#include "check.h"
#include "process.h"

#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 120, EMULATED_CHILD_SECONDS = 240 };

/* qemu adds a line of its own to what a program writes that dies of a signal. */
static void drop_emulators_line(char *output)
{
    char *line = process_is_emulated() ? strstr(output, "qemu: uncaught target signal ") : NULL;
    char *end = line != NULL ? strchr(line, '\n') : NULL;
    if (end != NULL) {
        memmove(line, end + 1, strlen(end));
    }
}

/* cmocka's handlers would go on with the next test, in the child. */
static void use_default_handlers(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        signal(faults[i], SIG_DFL);
    }
}

struct child child_run(void (*action)(uintptr_t value), uintptr_t value)
{
    struct child child = {0};
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(process_is_emulated() ? EMULATED_CHILD_SECONDS : CHILD_SECONDS);
        use_default_handlers();
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        action(value);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (;;) {
        const ssize_t n = read(ends[0], child.output + length, sizeof child.output - 1 - length);
        if (n <= 0) {
            break;
        }
        length += (size_t)n;
    }
    drop_emulators_line(child.output);
    close(ends[0]);
    CHECK(waitpid(pid, &child.status, 0) == pid);
    return child;
}

bool child_dies_of(int signal, void (*action)(uintptr_t value), uintptr_t value, const char *text)
{
    struct child child = child_run(action, value);
    return WIFSIGNALED(child.status) && WTERMSIG(child.status) == signal && strstr(child.output, text) != NULL;
}

bool child_died_saying(const struct child *child, const char *line)
{
    const size_t length = strlen(child->output);
    const bool aborted = WIFSIGNALED(child->status) && WTERMSIG(child->status) == SIGABRT;
    const char *newline = strchr(child->output, '\n');
    const bool one_line = length > 0 && newline == child->output + length - 1;

    char pattern[512];
    snprintf(pattern, sizeof pattern, "^%s\n$", line);
    regex_t regex;
    CHECK(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0);
    const bool matches = regexec(&regex, child->output, 0, NULL, 0) == 0;
    regfree(&regex);

    if (aborted && one_line && matches) {
        return true;
    }
    fprintf(stderr, "child ended with status 0x%x\n  wanted: %s\n  found:  %s\n", (unsigned)child->status, line,
            child->output);
    return false;
}
