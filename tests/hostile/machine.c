#include "cases.h"

#include "check.h"
#include "child.h"
#include "workload.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* For a workload of 40 MiB, with threads' stacks and forks, and for whatever else the machine does meanwhile. */
enum { COMMIT_LEAST_KIB = 1 << 20 };

/* How much may be committed before vm.overcommit_memory=2 refuses, less what is. */
static long commit_left_kib(void)
{
    long limit = 0;
    long committed = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "CommitLimit: %ld", &limit);
        (void)sscanf(line, "Committed_AS: %ld", &committed);
    }
    fclose(file);
    return limit - committed;
}

/* The reservation of addresses counts for nothing. */
static void strict_overcommit(uintptr_t file)
{
    alarm(60); /* the parent sets it back */
    workload_hold();
    CHECK(pwrite((int)file, "2", 1, 0) == 1);
    CHECK(workload_try() == 0);
    workload_check_held();
}

int hostile_change_machine(void)
{
    char before = 0;
    const int file = open("/proc/sys/vm/overcommit_memory", O_RDWR | O_CLOEXEC);
    if (file < 0 || read(file, &before, 1) != 1) {
        CANNOT_TRY("vm.overcommit_memory cannot be changed here");
        return 0;
    }
    if (commit_left_kib() < COMMIT_LEAST_KIB) {
        CANNOT_TRY("too much is committed for vm.overcommit_memory=2");
        return 0;
    }
    const struct child child = child_run(strict_overcommit, (uintptr_t)file);
    CHECK(pwrite(file, &before, 1, 0) == 1); /* whatever became of the child */
    return hostile_report("vm.overcommit_memory=2", &child) ? 0 : 1;
}
