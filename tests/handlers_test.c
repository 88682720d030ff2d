/* sigaction and its kin, as programs know them: what is installed is what is returned, called and inherited. */
#include "check.h"
#include "family.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* siginterrupt and sigset: old, but there. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

typedef void handler(int);

/* Not in musl: hakmem's then. */
extern handler *sysv_signal(int number, handler *action) __attribute__((weak));

static volatile sig_atomic_t calls;
static volatile sig_atomic_t value;
static void *volatile context_seen;

static void plain(int number)
{
    calls += number == SIGUSR1;
}

static void other(int number)
{
    calls += 100 * (number == SIGUSR1);
}

static void full(int number, siginfo_t *info, void *context)
{
    calls += number == SIGUSR1;
    value = info->si_value.sival_int;
    context_seen = context;
}

static void actions_are_returned_as_given(void)
{
    struct sigaction old;
    struct sigaction action = {.sa_handler = plain, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK(sigaction(SIGUSR1, &action, &old) == 0);
    CHECK(old.sa_handler == SIG_DFL && (old.sa_flags & SA_SIGINFO) == 0);
    memset(&old, 1, sizeof old);
    CHECK(sigaction(SIGUSR1, NULL, &old) == 0);
    CHECK(old.sa_handler == plain);
    CHECK((old.sa_flags & (SA_RESTART | SA_SIGINFO | SA_NODEFER)) == SA_RESTART);
    CHECK(sigismember(&old.sa_mask, SIGUSR2) == 1 && sigismember(&old.sa_mask, SIGUSR1) == 0);
    struct sigaction second = {.sa_sigaction = full, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGUSR1, &second, &old) == 0);
    CHECK(old.sa_handler == plain && (old.sa_flags & SA_SIGINFO) == 0);
    CHECK(sigaction(SIGUSR1, &old, &second) == 0);
    CHECK(second.sa_sigaction == full && (second.sa_flags & SA_SIGINFO) != 0);
    CHECK(signal(SIGUSR1, SIG_IGN) == plain);
    CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    CHECK(signal(SIGUSR1, plain) == SIG_DFL);
    CHECK(signal(SIGUSR1, SIG_DFL) == plain);
}

static void handlers_get_what_the_kernel_gives(void)
{
    struct sigaction action = {.sa_sigaction = full, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    calls = 0;
    CHECK(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 4711}) == 0);
    CHECK(calls == 1 && value == 4711 && context_seen != NULL);
    signal(SIGUSR1, plain);
    raise(SIGUSR1);
    raise(SIGUSR1);
    CHECK(calls == 3);
}

static void one_shot_handlers_are_forgotten(void)
{
    struct sigaction old;
    CHECK(sysv_signal(SIGUSR1, plain) == plain);
    CHECK(sigaction(SIGUSR1, NULL, &old) == 0);
    CHECK((old.sa_flags & (int)(SA_RESETHAND | SA_NODEFER)) == (int)(SA_RESETHAND | SA_NODEFER));
    calls = 0;
    raise(SIGUSR1);
    CHECK(calls == 1);
    CHECK(sigaction(SIGUSR1, NULL, &old) == 0);
    CHECK(old.sa_handler == SIG_DFL && (old.sa_flags & SA_SIGINFO) == 0);
    CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
}

/* Though somebody adds SA_NODEFER. */
static void handlers_of_signal_keep_their_signal_back(void)
{
    struct sigaction old;
    signal(SIGUSR1, plain);
    CHECK(sigaction(SIGUSR1, NULL, &old) == 0);
    CHECK(sigismember(&old.sa_mask, SIGUSR1) == 1 && sigismember(&old.sa_mask, SIGUSR2) == 0);
}

static bool restarts(void)
{
    struct sigaction action;
    CHECK(sigaction(SIGUSR1, NULL, &action) == 0);
    return (action.sa_flags & SA_RESTART) != 0;
}

static void siginterrupt_is_remembered(void)
{
    signal(SIGUSR1, plain);
    CHECK(restarts());
    CHECK(siginterrupt(SIGUSR1, 1) == 0);
    CHECK(!restarts());
    signal(SIGUSR1, other);
    CHECK(!restarts());
    CHECK(siginterrupt(SIGUSR1, 0) == 0);
    CHECK(restarts());
    calls = 0;
    raise(SIGUSR1);
    CHECK(calls == 100);
}

static void sigset_holds(void)
{
    signal(SIGUSR1, plain);
    calls = 0;
    CHECK(sigset(SIGUSR1, SIG_HOLD) == plain);
    raise(SIGUSR1);
    CHECK(calls == 0);
    CHECK(sigset(SIGUSR1, other) == SIG_HOLD);
    CHECK(calls == 100);
    CHECK(sigset(SIGUSR1, plain) == other);
    errno = 0;
    CHECK(sigset(0, plain) == SIG_ERR && errno == EINVAL);
}

static void bad_numbers_are_refused(void)
{
    struct sigaction action = {.sa_handler = plain};
    const int bad[] = {-1, 0, NSIG, 1000, SIGKILL, SIGSTOP};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errno = 0;
        CHECK(sigaction(bad[i], &action, NULL) == -1 && errno == EINVAL);
        errno = 0;
        CHECK(signal(bad[i], plain) == SIG_ERR && errno == EINVAL);
    }
    errno = 0;
    CHECK(signal(SIGUSR1, SIG_ERR) == SIG_ERR && errno == EINVAL);
    CHECK(sigaction(SIGKILL, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}

/* As the kernel sees it. */
struct kernel_action {
    handler *handler;
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* A runtime that asks the kernel itself, and chains to what it finds there or puts that back through libc. */
static void who_asks_the_kernel_may_chain(void)
{
    struct kernel_action seen = {0};
    signal(SIGUSR1, plain);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &seen, 8L) == 0);
    CHECK(seen.handler != SIG_DFL);
    struct sigaction action = {.sa_handler = seen.handler};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    calls = 0;
    raise(SIGUSR1);
    CHECK(calls == 1);
}

static void children_inherit(void)
{
    signal(SIGUSR1, plain);
    calls = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        raise(SIGUSR1);
        _exit(calls == 1 && signal(SIGUSR1, SIG_DFL) == plain ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(calls == 0);
}

enum { CHANGES = 20000 };

static atomic_int turns[2]; /* of the two threads, so far */

static void keep_step(int self, int turn)
{
    atomic_store(&turns[self], turn);
    while (atomic_load(&turns[1 - self]) < turn)
        sched_yield();
}

static void *install_one_shot(void *unused)
{
    struct sigaction action = {.sa_handler = other, .sa_flags = (int)SA_RESETHAND};
    for (int i = 1; i < 2 * CHANGES; i += 2) {
        keep_step(1, i);
        CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
        keep_step(1, i + 1);
    }
    return unused;
}

/* Of two threads that install a handler at once one is the last, with all that it has said. */
static void threads_change_whole_actions(void)
{
    struct sigaction action = {.sa_handler = plain, .sa_flags = SA_NODEFER};
    struct sigaction now;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, install_one_shot, NULL) == 0);
    for (int i = 1; i < 2 * CHANGES; i += 2) {
        keep_step(0, i);
        CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
        keep_step(0, i + 1);
        CHECK(sigaction(SIGUSR1, NULL, &now) == 0);
        CHECK((now.sa_handler == plain) == ((now.sa_flags & SA_NODEFER) != 0));
    }
    CHECK(pthread_join(thread, NULL) == 0);
    signal(SIGUSR1, SIG_DFL);
}

int main(void)
{
    family_require_hakmem();
    actions_are_returned_as_given();
    handlers_get_what_the_kernel_gives();
    one_shot_handlers_are_forgotten();
    handlers_of_signal_keep_their_signal_back();
    siginterrupt_is_remembered();
    sigset_holds();
    bad_numbers_are_refused();
    who_asks_the_kernel_may_chain();
    children_inherit();
    threads_change_whole_actions();
    return 0;
}
