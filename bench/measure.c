/*
 * measure --report FILE [--timeout SECONDS] [--set NAME=VALUE]... PROGRAM ARGS...
 *
 * Runs the program, with those additions to its environment, in a process group of its own, and writes what it cost
 * to the file as one JSON object. It is small and static: a child's ru_maxrss begins with the size of the process
 * that it was forked from.
 *
 * Since Linux 6.2 ru_maxrss is behind by up to 32 pages a processor, for pages of files and for others: half a MiB here, of
 * programs that have two. So the program is stopped when it is about to end, and looked at: what it holds then, the kernel
 * counts page by page. Of a program that has given back much by then the peak is ru_maxrss; so is that of a process that it
 * has started, of one that was killed, and where nobody may look at another.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"
#include "peak.h"
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

/* Waits until the pipe is closed: by then the process is in a group of its own, and watched. */
static void start(const struct plan *plan, const sigset_t *mask, const int *gate)
{
    char nothing;
    close(gate[1]);
    while (read(gate[0], &nothing, 1) == -1 && errno == EINTR)
        ;
    sigprocmask(SIG_SETMASK, mask, NULL);
    for (char *const *setting = plan->settings; *setting != NULL; setting++)
        if (putenv(*setting) != 0)
            _exit(CANNOT_EXECUTE);
    execvp(plan->program[0], plan->program);
    fprintf(stderr, "measure: %s: %s\n", plan->program[0], strerror(errno));
    _exit(CANNOT_EXECUTE);
}

/* The program stands still; `stop` says why, as in siginfo_t.si_status. It goes on as it would have without us. */
static void go_on(int stop, long *peak_kib)
{
    int event = stop >> 8;
    if (event == PTRACE_EVENT_EXIT)
        *peak_kib = peak_kib_of(program);
    if (event == PTRACE_EVENT_STOP && (stop & 0xff) != SIGTRAP)
        ptrace(PTRACE_LISTEN, program, NULL, NULL);
    else
        ptrace(PTRACE_CONT, program, NULL, event == 0 ? (void *)(long)stop : NULL);
}

/* Until the program has ended; its number stays taken. Returns its peak at its end, KiB, or 0. */
static long watch(void)
{
    long peak_kib = 0;
    for (;;) {
        siginfo_t changed;
        if (waitid(P_PID, (id_t)program, &changed, WEXITED | WSTOPPED | WNOWAIT) == -1) {
            if (errno == EINTR)
                continue;
            return peak_kib;
        }
        bool stopped = changed.si_code == CLD_STOPPED; /* by a signal, and nobody may look */
        if (!stopped && changed.si_code != CLD_TRAPPED)
            return peak_kib;
        waitid(P_PID, (id_t)program, &changed, WSTOPPED | WNOHANG);
        if (!stopped)
            go_on(changed.si_status, &peak_kib);
    }
}

/* `looked`: the program's own peak is exact, not what wait4 says. */
static void report(int file, int status, double wall, long peak_kib, bool looked, const struct rusage *used)
{
    const char *how = timed_out ? "timeout" : WIFSIGNALED(status) ? "signal" : "exit";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    dprintf(file,
            "{\"how\": \"%s\", \"number\": %d, \"wall\": %.6f, \"user\": %.6f, \"system\": %.6f, "
            "\"peak_kib\": %ld, \"looked\": %s, \"minor_faults\": %ld, \"major_faults\": %ld}\n",
            how, number, wall, seconds_of(used->ru_utime), seconds_of(used->ru_stime), peak_kib,
            looked ? "true" : "false", used->ru_minflt, used->ru_majflt);
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
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);
    struct sigaction action = {.sa_handler = end_program};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);

    int gate[2];
    if (pipe2(gate, O_CLOEXEC) == -1 || (program = fork()) == -1) {
        perror("measure: fork");
        return 1;
    }
    if (program == 0)
        start(&plan, &before, gate);
    setpgid(program, program);
    ptrace(PTRACE_SEIZE, program, NULL, (void *)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL));
    double begin = timing_seconds();
    close(gate[1]);
    alarm(plan.timeout);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);

    long peak_kib = watch();
    double wall = timing_seconds() - begin;
    kill(-program, SIGKILL); /* what it left running, while its number is still taken */
    int status;
    struct rusage used;
    if (wait4(program, &status, 0, &used) == -1) {
        perror("measure: wait4");
        return 1;
    }
    report(plan.report, status, wall, peak_kib > used.ru_maxrss ? peak_kib : used.ru_maxrss, peak_kib > 0, &used);
    return 0;
}
