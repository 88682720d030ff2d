/*
 * startup COUNT PROGRAM ARGS...
 *
 * Runs the program that often, one after the other, with its own environment: what a preloaded allocator adds to a
 * short command. Linked statically, so that it is not served itself and smaller than any program.
 */
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"
#include "timing.h"

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
    return 0;
}
