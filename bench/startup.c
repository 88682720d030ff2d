/*
 * startup COUNT PROGRAM ARGS...
 *
 * Runs the program that often, one after the other, with its own environment: what a preloaded allocator adds to a
 * short command. Linked statically, so that it is not served itself and smaller than any program.
 *
 * `measure` looks only at the process that it has started, and what wait4 says of others goes in steps as large as a
 * tenth of a short command. So some runs more, which are not timed, are looked at here, and the median of their peaks
 * is told: where the kernel puts things differs from run to run. Where nobody may look, nothing is told.
 */
#include <spawn.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"
#include "peak.h"
#include "timing.h"

enum { LOOKS = 15 };

static void run_once(char **words)
{
    pid_t child;
    int failure = posix_spawn(&child, words[0], NULL, NULL, words, environ);
    if (failure != 0) {
        fprintf(stderr, "startup: %s: %s\n", words[0], strerror(failure));
        exit(1);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "startup: %s failed\n", words[0]);
        exit(1);
    }
}

/* KiB that one run has held at most; 0: nobody may look. */
static long peak_of_run(char **words)
{
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
            execv(words[0], words);
        _exit(1);
    }
    long kib = 0;
    int status;
    while (child != -1 && waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_EXIT)
            kib = peak_kib_of(child);
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACEEXIT);
        ptrace(PTRACE_CONT, child, NULL, NULL);
    }
    return kib;
}

static int compare(const void *one, const void *other)
{
    long a = *(const long *)one;
    long b = *(const long *)other;
    return (a > b) - (a < b);
}

static void tell_peak(char **words)
{
    long kib[LOOKS];
    for (int i = 0; i < LOOKS; i++)
        if ((kib[i] = peak_of_run(words)) == 0)
            return;
    qsort(kib, LOOKS, sizeof kib[0], compare);
    printf("Extra = {\"peak_kib\": %ld}\n", kib[LOOKS / 2]);
}

int main(int count, char **words)
{
    if (count < 3) {
        fputs("usage: startup COUNT PROGRAM ARGS...\n", stderr);
        return 2;
    }
    uint64_t runs = args_number("COUNT", words[1], 1, 1000000);
    double start = timing_seconds();
    for (uint64_t i = 0; i < runs; i++)
        run_once(words + 2);
    double seconds = timing_seconds() - start;
    printf("Throughput = %.0f operations per second (%.3f s)\n", (double)runs / seconds, seconds);
    fflush(stdout); /* so that no child has it to write */
    tell_peak(words + 2);
    return 0;
}
