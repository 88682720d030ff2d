/*
 * measure --report FILE [--timeout SECONDS] [--set NAME=VALUE]... PROGRAM ARGS...
 *
 * Runs the program, with those additions to its environment, in a process group of its own, and writes what it cost
 * to the file as one JSON object. It is small and static: a child's ru_maxrss begins with the size of the process
 * that it was forked from.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"
#include "timing.h"

enum { CANNOT_EXECUTE = 127, MOST_SETTINGS = 64 };

struct plan {
    int report;
    unsigned timeout;
    char *settings[MOST_SETTINGS + 1];
    char **program;
};

static volatile sig_atomic_t timed_out;
static pid_t program;

static void end_program(int number)
{
    timed_out = number == SIGALRM;
    kill(-program, SIGKILL);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static void usage(void)
{
    fputs("usage: measure --report FILE [--timeout SECONDS] [--set NAME=VALUE]... PROGRAM ARGS...\n", stderr);
    exit(2);
}

static struct plan parse(int count, char **words)
{
    struct plan plan = {.report = -1};
    unsigned set = 0;
    int at = 1;
    for (; at + 1 < count && strncmp(words[at], "--", 2) == 0; at += 2) {
        if (strcmp(words[at], "--timeout") == 0)
            plan.timeout = (unsigned)args_number("--timeout", words[at + 1], 1, 1000000);
        else if (strcmp(words[at], "--set") == 0 && strchr(words[at + 1], '=') != NULL && set < MOST_SETTINGS)
            plan.settings[set++] = words[at + 1];
        else if (strcmp(words[at], "--report") == 0 && plan.report == -1)
            plan.report = open(words[at + 1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        else
            usage();
    }
    if (at >= count || plan.report == -1)
        usage();
    plan.program = words + at;
    return plan;
}

static void start(const struct plan *plan, const sigset_t *mask)
{
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    for (char *const *setting = plan->settings; *setting != NULL; setting++)
        if (putenv(*setting) != 0)
            _exit(CANNOT_EXECUTE);
    execvp(plan->program[0], plan->program);
    fprintf(stderr, "measure: %s: %s\n", plan->program[0], strerror(errno));
    _exit(CANNOT_EXECUTE);
}

static void report(int file, int status, double wall, const struct rusage *used)
{
    const char *how = timed_out ? "timeout" : WIFSIGNALED(status) ? "signal" : "exit";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    dprintf(file,
            "{\"how\": \"%s\", \"number\": %d, \"wall\": %.6f, \"user\": %.6f, \"system\": %.6f, "
            "\"peak_kib\": %ld, \"minor_faults\": %ld, \"major_faults\": %ld}\n",
            how, number, wall, seconds_of(used->ru_utime), seconds_of(used->ru_stime), used->ru_maxrss,
            used->ru_minflt, used->ru_majflt);
}

int main(int count, char **words)
{
    struct plan plan = parse(count, words);

    /* The handlers need the program's number: their signals wait until it is known. */
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGALRM);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, &before);
    struct sigaction action = {.sa_handler = end_program};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    double begin = timing_seconds();
    program = fork();
    if (program == -1) {
        perror("measure: fork");
        return 1;
    }
    if (program == 0)
        start(&plan, &before);
    setpgid(program, program); /* whoever of the two comes first */
    alarm(plan.timeout);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);

    siginfo_t ended;
    while (waitid(P_PID, (id_t)program, &ended, WEXITED | WNOWAIT) == -1 && errno == EINTR)
        ;
    double wall = timing_seconds() - begin;
    kill(-program, SIGKILL); /* what it left running, while its number is still taken */
    int status;
    struct rusage used;
    if (wait4(program, &status, 0, &used) == -1) {
        perror("measure: wait4");
        return 1;
    }
    report(plan.report, status, wall, &used);
    return 0;
}
