/*
 * startup N [--preload LIBRARY] -- PROGRAM ARGS...
 *
 * Runs PROGRAM N times, one after the other, and prints peak memory (ru_maxrss, KiB) and minor page faults as
 * one line of JSON after what PROGRAM prints. LIBRARY is preloaded into PROGRAM only. Exit code 1 if PROGRAM
 * cannot be run or fails.
 *
 * Link it statically. The kernel counts the memory of the process that calls exec towards the child's peak,
 * so this program must be smaller than any that it measures; a peak that is not above its own is refused.
 */
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"

enum { RUNS_MOST = 1000 };

struct sample {
    long kib;
    long faults;
};

extern char **environ;

static __attribute__((noreturn)) void usage(void)
{
    fputs("usage: startup N [--preload LIBRARY] -- PROGRAM ARGS...\n", stderr);
    exit(2);
}

/* LD_PRELOAD=LIBRARY as an environment entry. The dynamic loader passes silently over what it cannot take. */
static char *preload_entry(const char *library)
{
    char *path = realpath(library, NULL);
    if (path == NULL || access(path, R_OK) != 0 || strpbrk(path, " :") != NULL) {
        fprintf(stderr, "startup: --preload=%s: legal is a readable file without blank or colon in its path\n",
                library);
        exit(2);
    }
    char *entry;
    if (asprintf(&entry, "LD_PRELOAD=%s", path) < 0)
        exit(1);
    free(path);
    return entry;
}

/* Our environment with `entry`, if any, in place of an LD_PRELOAD that is there. */
static char **child_environment(char *entry)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **result = calloc(count + 2, sizeof *result);
    if (result == NULL)
        exit(1);
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (entry == NULL || strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
            result[used++] = environ[i];
    result[used] = entry;
    return result;
}

static struct sample run_once(char **words, char **environment)
{
    pid_t child;
    int error = posix_spawnp(&child, words[0], NULL, NULL, words, environment);
    if (error != 0) {
        fprintf(stderr, "startup: cannot run %s: %s\n", words[0], strerror(error));
        exit(1);
    }
    int status;
    struct rusage usage;
    pid_t ended;
    do
        ended = wait4(child, &status, 0, &usage);
    while (ended < 0 && errno == EINTR);
    if (ended != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        if (ended == child && WIFSIGNALED(status))
            fprintf(stderr, "startup: %s: signal %d (%s)\n", words[0], WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
            fprintf(stderr, "startup: %s: exit code %d\n", words[0], ended == child ? WEXITSTATUS(status) : -1);
        exit(1);
    }
    return (struct sample){.kib = usage.ru_maxrss, .faults = usage.ru_minflt};
}

static int compare(const void *a, const void *b)
{
    long x = *(const long *)a;
    long y = *(const long *)b;
    return (x > y) - (x < y);
}

static void print_figure(const char *name, long *values, uint64_t count)
{
    qsort(values, count, sizeof *values, compare);
    printf(", \"%s\": {\"median\": %ld, \"min\": %ld, \"max\": %ld}", name, values[count / 2], values[0],
           values[count - 1]);
}

int main(int count, char **words)
{
    if (count < 4)
        usage();
    uint64_t runs = args_number("N", words[1], 1, RUNS_MOST);
    char **rest = words + 2;
    char *entry = NULL;
    if (strcmp(rest[0], "--preload") == 0) {
        entry = preload_entry(rest[1]);
        rest += 2;
    }
    if (rest[0] == NULL || strcmp(rest[0], "--") != 0 || rest[1] == NULL)
        usage();
    char **environment = child_environment(entry);

    static long kib[RUNS_MOST];
    static long faults[RUNS_MOST];
    struct rusage own;
    for (uint64_t run = 0; run < runs; run++) {
        struct sample sample = run_once(rest + 1, environment);
        kib[run] = sample.kib;
        faults[run] = sample.faults;
        getrusage(RUSAGE_SELF, &own);
        if (sample.kib <= own.ru_maxrss) {
            fprintf(stderr, "startup: %s peaks at %ld KiB, not above this launcher's %ld: not measurable\n", rest[1],
                    sample.kib, own.ru_maxrss);
            return 1;
        }
    }
    printf("{\"runs\": %llu, \"launcher_kib\": %ld", (unsigned long long)runs, own.ru_maxrss);
    print_figure("peak_kib", kib, runs);
    print_figure("minor_faults", faults, runs);
    puts("}");
    return 0;
}
