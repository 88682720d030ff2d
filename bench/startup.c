/*
 * startup RUNS LIBRARY PROGRAM ARGS...
 *
 * Runs PROGRAM without and with LIBRARY preloaded, in turn, RUNS times each, and prints medians of its peak
 * memory and page faults as JSON. Linked statically: a child's peak counts its launcher's memory at the time
 * of exec, so that must be smaller than any program's.
 */
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"

enum { RUNS_MOST = 1000 };

struct samples {
    long kib[RUNS_MOST];
    long faults[RUNS_MOST];
};

static struct samples without, with;

static void run_once(char **words, char **environment, struct samples *samples, uint64_t run)
{
    pid_t child;
    if (posix_spawn(&child, words[0], NULL, NULL, words, environment) != 0) {
        fprintf(stderr, "startup: cannot run %s\n", words[0]);
        exit(1);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child || !WIFEXITED(status)) {
        fprintf(stderr, "startup: %s did not exit\n", words[0]);
        exit(1);
    }
    samples->kib[run] = usage.ru_maxrss;
    samples->faults[run] = usage.ru_minflt;
}

static int compare(const void *a, const void *b)
{
    long x = *(const long *)a;
    long y = *(const long *)b;
    return (x > y) - (x < y);
}

static long median(long *values, uint64_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

int main(int count, char **words)
{
    if (count < 4) {
        fputs("usage: startup RUNS LIBRARY PROGRAM ARGS...\n", stderr);
        return 2;
    }
    uint64_t runs = args_number("RUNS", words[1], 1, RUNS_MOST);
    static char preload[4096] = "LD_PRELOAD=";
    strncat(preload, words[2], sizeof preload - sizeof "LD_PRELOAD=");
    char *plain[] = {NULL};
    char *preloaded[] = {preload, NULL};
    for (uint64_t run = 0; run < runs; run++) {
        run_once(words + 3, plain, &without, run);
        run_once(words + 3, preloaded, &with, run);
    }
    long kib = median(without.kib, runs);
    long faults = median(without.faults, runs);
    printf("{\"runs\": %llu, \"kib\": %ld, \"faults\": %ld, \"extra_kib\": %ld, \"extra_faults\": %ld}\n",
           (unsigned long long)runs, kib, faults, median(with.kib, runs) - kib, median(with.faults, runs) - faults);
    return 0;
}
