/*
 * Programs that handle SIGSEGV, in a process that has taken guarded samples, or has started check mode: before and after that
 * they install, chain, put back and leave handlers as if the library had none. This program runs itself again for each way.
 */
#include "check.h"
#include "child.h"
#include "family.h"
#include "process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 2000, GOOD = 7, BAD = 8, SECONDS = 20 };

/* Bytes that are requested, on average, before a block is guarded: hardly ever those of the start. */
#define GUARD "8M"

extern int hak_check_start(void) __attribute__((weak));

typedef void handler(int);

static const char *own_program; /* argv[0] */
static char *kept;

static void say(const char *text)
{
    CHECK(write(STDERR_FILENO, text, strlen(text)) == (ssize_t)strlen(text));
}

/* ---- The program's handlers. */

static struct sigaction older;
static struct sigaction given;
static char alternate[1 << 16];
static jmp_buf way_out;

static void ends_well(int number)
{
    say("first\n");
    _exit(number == SIGSEGV ? GOOD : BAD);
}

static void chains(int number, siginfo_t *info, void *context)
{
    say("second\n");
    if ((older.sa_flags & SA_SIGINFO) != 0)
        older.sa_sigaction(number, info, context);
    else
        older.sa_handler(number);
}

static void returns(int number)
{
    say(number == SIGSEGV ? "first\n" : "another signal\n");
}

static void sends_again(int number)
{
    say("first\n");
    (void)raise(number);
    _exit(BAD);
}

static void leaves(int number)
{
    _longjmp(way_out, number);
}

static bool is_blocked(int number)
{
    sigset_t now;
    CHECK(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
    return sigismember(&now, number) == 1;
}

static void sees_its_mask(int number)
{
    bool deferred = (given.sa_flags & SA_NODEFER) == 0;
    bool right = is_blocked(SIGUSR1) && !is_blocked(SIGUSR2) && is_blocked(number) == deferred;
    _exit(right ? GOOD : BAD);
}

static void sees_its_arguments(int number, siginfo_t *info, void *context)
{
    bool right = number == SIGSEGV && info->si_signo == SIGSEGV && info->si_addr == kept + 5 && context != NULL;
    _exit(right ? GOOD : BAD);
}

static void sees_its_stack(int number)
{
    char here;
    bool on_alternate = (uintptr_t)&here - (uintptr_t)alternate < sizeof alternate;
    _exit(on_alternate == ((given.sa_flags & SA_ONSTACK) != 0) && number == SIGSEGV ? GOOD : BAD);
}

/* ---- What the ways are made of. */

static void install(handler *function, int flags)
{
    given = (struct sigaction){.sa_handler = function, .sa_flags = flags};
    CHECK(sigemptyset(&given.sa_mask) == 0 && sigaddset(&given.sa_mask, SIGUSR1) == 0);
    CHECK(sigaction(SIGSEGV, &given, NULL) == 0);
}

static void install_chained(void)
{
    struct sigaction action = {.sa_sigaction = chains, .sa_flags = SA_SIGINFO};
    CHECK(sigemptyset(&action.sa_mask) == 0);
    CHECK(sigaction(SIGSEGV, &action, &older) == 0);
}

/* Requests blocks until one is guarded: its size is what was asked for. */
static void sample(void)
{
    for (;;) {
        kept = family.malloc(BLOCK);
        bool guarded = family.usable_size(kept) == BLOCK;
        family.free(kept);
        if (guarded)
            return;
    }
}

static void use_after_free(void)
{
    ((volatile char *)kept)[5] = 1;
}

static void write_to_nowhere(void)
{
    volatile uintptr_t nowhere = 8;
    *(volatile char *)nowhere = 1;
}

/* Where override/signals.c is in the link, what the kernel knows is its wrapper. With the hak_ names it is not, though a
 * sanitizer may have one. */
static bool is_wrapped(void)
{
    struct { handler *handler; unsigned long flags; void (*restorer)(void); unsigned long mask; } seen = {0};
    CHECK(signal(SIGUSR2, returns) == SIG_DFL);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &seen, 8L) == 0);
    CHECK(signal(SIGUSR2, SIG_DFL) == returns);
    return seen.handler != returns && family.cfree != NULL;
}

static bool is_installed(handler *function, int flags)
{
    struct sigaction now;
    const int all = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | (int)SA_RESETHAND;
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0);
    return now.sa_handler == function && (now.sa_flags & all) == flags;
}

/* ---- The ways. */

static void chained(void)
{
    install(ends_well, 0);
    sample();
    install_chained();
    use_after_free();
}

static void chained_without_report(void)
{
    install(ends_well, 0);
    sample();
    install_chained();
    write_to_nowhere();
}

static void put_back(void)
{
    const struct sigaction mine = {.sa_handler = returns};
    install(ends_well, 0);
    sample();
    CHECK(sigaction(SIGSEGV, &mine, &older) == 0);
    CHECK(sigaction(SIGSEGV, &older, NULL) == 0);
    use_after_free();
}

static void put_back_by_signal(void)
{
    CHECK(signal(SIGSEGV, ends_well) == SIG_DFL);
    sample();
    handler *before = signal(SIGSEGV, returns);
    CHECK(signal(SIGSEGV, before) == returns);
    use_after_free();
}

static void asked_what_is_there(void)
{
    install(ends_well, SA_ONSTACK | SA_NODEFER);
    sample();
    if (is_wrapped()) {
        CHECK(is_installed(ends_well, SA_ONSTACK | SA_NODEFER));
        CHECK(signal(SIGSEGV, returns) == ends_well);
        CHECK(is_installed(returns, SA_RESTART));
    }
    install(ends_well, 0);
    write_to_nowhere();
}

static void asked_where_nothing_is(void)
{
    sample();
    if (is_wrapped())
        CHECK(is_installed(SIG_DFL, 0));
    CHECK(signal(SIGSEGV, ends_well) == SIG_DFL || !is_wrapped());
    CHECK(is_installed(ends_well, SA_RESTART));
    write_to_nowhere();
}

static void installed_later(void)
{
    sample();
    install(ends_well, 0);
    use_after_free();
}

static void once(void)
{
    install(returns, (int)SA_RESETHAND);
    sample();
    write_to_nowhere();
}

static void once_and_again(void)
{
    install(sends_again, (int)SA_RESETHAND | SA_NODEFER);
    sample();
    write_to_nowhere();
}

/* Only what SA_NODEFER leaves open may come a second time. */
static void left(void)
{
    static volatile int times;
    install(leaves, SA_NODEFER);
    sample();
    (void)_setjmp(way_out);
    if (times++ < 3)
        write_to_nowhere();
    _exit(GOOD);
}

static void masked(void)
{
    install(sees_its_mask, 0);
    sample();
    write_to_nowhere();
}

static void masked_less(void)
{
    install(sees_its_mask, SA_NODEFER);
    sample();
    write_to_nowhere();
}

static void told_all(void)
{
    const struct sigaction action = {.sa_sigaction = sees_its_arguments, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    sample();
    use_after_free();
}

static void on_stack(int flags)
{
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    CHECK(sigaltstack(&stack, NULL) == 0);
    install(sees_its_stack, flags);
    sample();
    use_after_free();
}

static void on_its_alternate_stack(void)
{
    on_stack(SA_ONSTACK);
}

static void on_its_plain_stack(void)
{
    on_stack(0);
}

static void unhandled(void)
{
    sample();
    use_after_free();
}

static void unhandled_elsewhere(void)
{
    sample();
    write_to_nowhere();
}

static void unhandled_and_sent(void)
{
    sample();
    (void)raise(SIGSEGV);
}

static void reset_and_sent(void)
{
    install(ends_well, 0);
    sample();
    CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
    (void)raise(SIGSEGV);
}

/* What is ignored is ignored as often as it is sent. */
static void ignored(void)
{
    CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
    sample();
    (void)raise(SIGSEGV);
    (void)raise(SIGSEGV);
    _exit(GOOD);
}

/* Installed by a runtime that asks the kernel itself. */
static void behind_libcs_back(void)
{
    struct { handler *handler; unsigned long flags; void (*restorer)(void); unsigned long mask; } action = {0};
    install(ends_well, 0);
    CHECK(syscall(SYS_rt_sigaction, SIGSEGV, NULL, &action, 8L) == 0);
    action.handler = ends_well;
    install(returns, 0);
    CHECK(syscall(SYS_rt_sigaction, SIGSEGV, &action, NULL, 8L) == 0);
    sample();
    install_chained();
    use_after_free();
}

static void chained_in_check_mode(void)
{
    install(ends_well, 0);
    if (hak_check_start == NULL)
        chained_without_report();
    CHECK(hak_check_start() == 0);
    install_chained();
    write_to_nowhere();
}

static const struct way {
    const char *name;
    void (*go)(void);
    int signal;          /* that it dies of; 0: it exits well */
    int reports;         /* of the library's */
    const char *written; /* lines, by its own handlers */
} ways[] = {
    {"--chained", chained, 0, 1, "second\nfirst\n"},
    {"--chained-without-report", chained_without_report, 0, 0, "second\nfirst\n"},
    {"--put-back", put_back, 0, 1, "first\n"},
    {"--put-back-by-signal", put_back_by_signal, 0, 1, "first\n"},
    {"--asked-what-is-there", asked_what_is_there, 0, 0, "first\n"},
    {"--asked-where-nothing-is", asked_where_nothing_is, 0, 0, "first\n"},
    {"--once", once, SIGSEGV, 0, "first\n"},
    {"--once-and-again", once_and_again, SIGSEGV, 0, "first\n"},
    {"--left", left, 0, 0, ""},
    {"--masked", masked, 0, 0, ""},
    {"--masked-less", masked_less, 0, 0, ""},
    {"--told-all", told_all, 0, 1, ""},
    {"--on-its-alternate-stack", on_its_alternate_stack, 0, 1, ""},
    {"--on-its-plain-stack", on_its_plain_stack, 0, 1, ""},
    {"--unhandled", unhandled, SIGSEGV, 1, ""},
    {"--unhandled-elsewhere", unhandled_elsewhere, SIGSEGV, 0, ""},
    {"--unhandled-and-sent", unhandled_and_sent, SIGSEGV, 0, ""},
    {"--reset-and-sent", reset_and_sent, SIGSEGV, 0, ""},
    {"--ignored", ignored, 0, 0, ""},
    {"--behind-libcs-back", behind_libcs_back, 0, 1, "second\nfirst\n"},
    {"--chained-in-check-mode", chained_in_check_mode, 0, 1, "second\nfirst\n"},
    {"--installed-later", installed_later, 0, 1, "first\n"},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

static void run_way(uintptr_t index)
{
    /* The sanitizers have handlers of their own. */
    CHECK(setenv("ASAN_OPTIONS", "detect_leaks=0:handle_segv=0", 1) == 0 && setenv("TSAN_OPTIONS", "handle_segv=0", 1) == 0);
    CHECK(setenv("HAKMEM_GUARD", GUARD, 1) == 0);
    (void)alarm(SECONDS);
    process_become(own_program, ways[index].name);
    _exit(BAD);
}

/* How many lines begin with `start`. */
static int count_lines(const char *text, const char *start)
{
    int found = 0;
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL)
        found += strncmp(line, start, strlen(start)) == 0;
    return found;
}

static bool went_well(const struct way *way, const struct child *child, bool wrapped)
{
    /* Without the wrapper a later handler takes the place of the library's. */
    int reports = !wrapped && way->go == installed_later ? 0 : way->reports;
    int found = count_lines(child->output, "==") + count_lines(child->output, "hakmem: crash: SIGSEGV");
    bool ended = way->signal != 0 ? WIFSIGNALED(child->status) && WTERMSIG(child->status) == way->signal
                                  : WIFEXITED(child->status) && WEXITSTATUS(child->status) == GOOD;
    return ended && found == reports && count_lines(child->output, "first") == count_lines(way->written, "first")
           && count_lines(child->output, "second") == count_lines(way->written, "second");
}

int main(int argc, char **argv)
{
    bool wrapped = is_wrapped();
    int failed = 0;
    for (unsigned i = 0; argc > 1 && i < WAYS; i++) {
        if (strcmp(argv[1], ways[i].name) == 0) {
            ways[i].go();
            return BAD;
        }
    }
    family_require_hakmem();
    own_program = argv[0];
    for (unsigned i = 0; i < WAYS; i++) {
        /* Without the wrapper signal() puts the library's handler back as one that is told the number only; not all processors
         * pass on the rest then. */
        if (!wrapped && ways[i].go == put_back_by_signal) {
            CANNOT_TRY("a handler put back by signal(), without the wrapper");
            continue;
        }
        const struct child child = child_run(run_way, i);
        if (!went_well(&ways[i], &child, wrapped)) {
            fprintf(stderr, "%s: status 0x%x\n%s", ways[i].name, (unsigned)child.status, child.output);
            failed++;
        }
    }
    return failed != 0;
}
