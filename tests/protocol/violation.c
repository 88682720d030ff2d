/* What must not happen has: the steps that led to it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search.h"

static const char *const kind_names[] = {
    [OP_READ] = "reads", [OP_WRITE] = "writes", [OP_STORE] = "stores, buffered", [OP_FLUSH] = "store reaches memory",
    [OP_LOCK] = "locks", [OP_UNLOCK] = "unlocks", [OP_BARRIER] = "membarrier", [OP_SLEEP] = "futex wait",
    [OP_WAKEN] = "wakes up", [OP_WAKE] = "futex wake", [OP_VANISH] = "fork: others vanish",
};

static void print_steps(void)
{
    extern char __executable_start[];
    FILE *names = NULL;
    char command[128];
    char path[] = "/tmp/protocol-steps-XXXXXX";
    int file = mkstemp(path);
    snprintf(command, sizeof command, "addr2line -f -s -e /proc/%d/exe > %s", (int)getpid(), path);
    names = popen(command, "w");
    for (int i = 0; names != NULL && i < state->depth; i++)
        fprintf(names, "%#" PRIxPTR "\n", (uintptr_t)state->node[i].op.caller - 1 - (uintptr_t)__executable_start);
    if (names != NULL)
        pclose(names);
    names = file >= 0 ? fdopen(file, "r") : NULL;
    for (int i = 0; i < state->depth; i++) {
        const struct node *node = &state->node[i];
        char function[128] = "?\n";
        char line[128] = "?\n";
        if (names != NULL && (fgets(function, sizeof function, names) == NULL || fgets(line, sizeof line, names) == NULL))
            strcpy(line, "?\n");
        function[strcspn(function, "\n")] = '\0';
        line[strcspn(line, "\n ")] = '\0';
        fprintf(stderr, "%5d  thread %d%-9s %-21s %#14" PRIxPTR "  %s (%s)\n", i,
                node->chosen % THREADS_MOST, node->chosen >= THREADS_MOST ? "'s buffer" : "",
                kind_names[node->op.kind], node->op.at, function, line);
    }
    if (names != NULL)
        fclose(names);
    unlink(path);
}

void sched_violation(const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    state->on = false;
    print_steps();
    fprintf(stderr, "%s: violation in order %" PRIu64 ": %s\n", state->scenario->name, state->runs + 1, text);
    printf("%-28s violation: %s\n", state->scenario->name, text);
    fflush(stdout);
    _exit(2);
}
