/*
 * Surroundings that refuse: limits reached while the program runs, kernels without a system call, unusual address
 * spaces. In each, requests get memory or ENOMEM, live blocks keep their content, and when a limit is lifted all is
 * as it was. Nothing is printed, nobody crashes.
 *
 *   hostile_test [PART OF A CASE'S NAME]
 *   hostile_test --machine   what is set for the whole machine, and set back
 */
#include "cases.h"

#include "child.h"
#include "family.h"
#include "process.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

void hostile_become_workload(void)
{
    process_become(program, "--workload");
    _exit(3);
}

bool hostile_report(const char *name, const struct child *child)
{
    const bool fine = child->status == 0 && child->output[0] == '\0';
    printf("%s: %s\n", fine ? "ok" : "FAILED", name);
    if (!fine)
        printf("  status %#x\n  %s\n", (unsigned)child->status, child->output);
    return fine;
}

static int run(const struct hostile_case *cases, size_t count, const char *part)
{
    int failures = 0;
    for (size_t i = 0; i < count; i++) {
        if (part != NULL && strstr(cases[i].name, part) == NULL)
            continue;
        const struct child child = child_run(cases[i].action, cases[i].value);
        failures += !hostile_report(cases[i].name, &child);
    }
    return failures;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--workload") == 0) {
        workload_run();
        return 0;
    }
    family_require_hakmem();
    setvbuf(stdout, NULL, _IONBF, 0);
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "--machine") == 0)
        return hostile_change_machine();
    const char *part = argc > 1 ? argv[1] : NULL;
    return run(limit_cases, limit_case_count, part) + run(kernel_cases, kernel_case_count, part) != 0;
}
