/*
 * sigaction and its older kin: each handler of the program runs inside a wrapper, which protects the two hot
 * functions from what the handler allocates (heap/interrupt.h), and calls the library's own first, where there is
 * one. The program sees its own handlers: they are what these functions return, and they get the arguments that the
 * kernel gave.
 *
 * The kernel knows whether a signal's handler is a wrapped one; the table here knows which. Handlers that a
 * program installs behind libc's back run unprotected. Async-signal-safe, as sigaction must be.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/interrupted.h"
#include "base/atomic.h"
#include "base/claim.h"
#include "base/thread.h"
#include "hakmem.h"
#include "os/handler.h"
#include "os/os.h"
#include "override/late_lookup.h"

typedef void plain_handler(int);
typedef void full_handler(int, siginfo_t *, void *);
typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);

/* libc's own. A static program has it under this name, and so has glibc's shared one; what others have preloaded after us comes first. */
OF_GLIBC int __sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/* Declared here: which headers have which of them depends on the libc and on the feature macros. */
HAK_EXPORT plain_handler *bsd_signal(int number, plain_handler *handler);
HAK_EXPORT plain_handler *ssignal(int number, plain_handler *handler);
HAK_EXPORT plain_handler *sysv_signal(int number, plain_handler *handler);
HAK_EXPORT plain_handler *__sysv_signal(int number, plain_handler *handler);

static struct {
    plain_handler *handler;
    bool full;        /* installed with SA_SIGINFO */
    bool interrupts;  /* siginterrupt: a handler that signal() installs does not restart system calls */
    os_handler *first; /* the library's own */
} table[NSIG];

static bool is_valid(int number)
{
    return number > 0 && number < NSIG;
}

static sigaction_function *libc_sigaction(void)
{
    static const char libc_name[] = "sigaction"; /* a name that cmake/layout.ld knows: each process reads it */
    static sigaction_function *found;
    sigaction_function *function = load_relaxed(&found);
    if (function == NULL) {
        function = (sigaction_function *)late_lookup_next(libc_name);
        if (function == NULL)
            function = __sigaction;
        store_relaxed(&found, function);
    }
    return function;
}

/* Others that were preloaded after us may keep a handler to themselves, or wait in there for another thread: what the kernel calls is
 * theirs to say, and handlers come to them as the program gave them. */
/* cppcheck-suppress constParameter ; there are no constant functions */
static bool is_libcs(sigaction_function *function)
{
    return IS_GLIBC ? function == __sigaction : function != NULL; /* other libcs do not show theirs */
}

static FRAGILE void run(int number, siginfo_t *info, void *context)
{
    plain_handler *handler = load_relaxed(&table[number].handler);
    os_handler *first = load_relaxed(&table[number].first);
    struct interruption interruption = interrupted_begin(context, __builtin_return_address(0));
    if (first != NULL)
        first(number, info, context);
    ((full_handler *)(void (*)(void))handler)(number, info, context);
    interrupted_end(interruption);
}

/* In the place of the default action: the process dies of the signal, but the library's own handler is called first. */
static void run_alone(int number, siginfo_t *info, void *context)
{
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    os_handler *first = load_relaxed(&table[number].first);
    first(number, info, context);
    os_hand_on(number, info, context, &by_default);
}

static plain_handler *as_plain(full_handler *handler)
{
    return (plain_handler *)(void (*)(void))handler;
}

static plain_handler *wrapper(void)
{
    return as_plain(run);
}

/* What the program shall see of an action that the kernel has returned. */
static void unwrap(struct sigaction *action, plain_handler *handler, bool full)
{
    if (action->sa_handler == as_plain(run_alone))
        *action = (struct sigaction){.sa_handler = SIG_DFL};
    /* Of a handler for one signal that has come the kernel leaves the flags, of which this is ours (change_action). */
    if (action->sa_handler == SIG_DFL && (action->sa_flags & (int)SA_RESETHAND) != 0 && !full)
        action->sa_flags &= ~SA_SIGINFO;
    if (action->sa_handler != wrapper())
        return;
    action->sa_handler = handler;
    if (!full)
        action->sa_flags &= ~SA_SIGINFO;
}

enum { YIELDS = 100 };

/* The table and the kernel are changed together: by one thread at a time, and by no handler in between. A child of fork
 * takes over from a thread that it does not have, and another of whose threads may come to have the same thread_self(). */
static uint32_t changing;
static uintptr_t changer; /* its thread_self() */

struct change {
    bool is_inner; /* libc's sigaction, which others may have replaced too, has come back to ours */
    struct os_signals before;
};

/* It takes the other thread a moment, if it runs: it may not, for one of a higher priority that only yields. */
static void wait_and_claim(void)
{
    for (unsigned tries = 0; !claim_take(&changing); tries++) {
        if (tries < YIELDS)
            (void)sched_yield();
        else
            os_sleep(1);
    }
}

static struct change begin_change(void)
{
    if (load_relaxed(&changer) == thread_self() && claim_is_taken(&changing))
        return (struct change){.is_inner = true};
    struct change change = {.before = os_block_signals()};
    wait_and_claim();
    store_relaxed(&changer, thread_self());
    return change;
}

static void end_change(struct change change)
{
    if (change.is_inner)
        return;
    store_relaxed(&changer, (uintptr_t)0);
    claim_drop(&changing);
    os_unblock_signals(change.before);
}

/* libc's, with the wrapper as what the kernel calls, if there is to be a handler. */
static int change_action(sigaction_function *libc, int number, const struct sigaction *action, struct sigaction *old)
{
    plain_handler *old_handler = load_relaxed(&table[number].handler);
    bool old_full = load_relaxed(&table[number].full);
    struct sigaction wrapped;
    bool calls_wrapper = action != NULL && os_has_handler(action);
    bool wraps = calls_wrapper && action->sa_handler != wrapper();
    if (calls_wrapper) {
        wrapped = *action;
        wrapped.sa_flags |= SA_SIGINFO; /* without it, AArch64's kernel gives a handler one argument only */
        wrapped.sa_handler = wrapper();
    }
    if (wraps) {
        /* First: to another thread the signal may come as soon as the kernel knows. */
        store_relaxed(&table[number].handler, action->sa_handler);
        store_relaxed(&table[number].full, (action->sa_flags & SA_SIGINFO) != 0);
    }
    int result = libc(number, calls_wrapper ? &wrapped : action, old);
    if (result != 0 && wraps) {
        store_relaxed(&table[number].handler, old_handler);
        store_relaxed(&table[number].full, old_full);
    }
    if (result == 0)
        unwrap(old, old_handler, old_full);
    return result;
}

HAK_EXPORT int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    sigaction_function *libc = libc_sigaction();
    if (libc == NULL || !is_valid(number)) {
        errno = libc == NULL ? ENOSYS : EINVAL;
        return -1;
    }
    if (!is_libcs(libc) || (old == NULL && (action == NULL || !os_has_handler(action))))
        return libc(number, action, old);
    /* What the caller points to is touched while signals may come: it may not be there. */
    struct sigaction wanted = action != NULL ? *action : (struct sigaction){0};
    struct sigaction before;
    struct change change = begin_change();
    int result = change_action(libc, number, action != NULL ? &wanted : NULL, &before);
    end_change(change);
    if (result == 0 && old != NULL)
        *old = before;
    return result;
}

void os_call_first(int number, os_handler *handler)
{
    struct sigaction action;
    struct sigaction alone = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction_function *libc = libc_sigaction();
    if (!is_libcs(libc) || libc(number, NULL, &action) != 0)
        return;
    store_relaxed(&table[number].first, handler);
    if (action.sa_handler == SIG_DFL) {
        alone.sa_sigaction = run_alone;
        if (libc(number, &alone, &action) == 0 && action.sa_handler != SIG_DFL)
            (void)libc(number, &action, NULL); /* another thread was faster */
    } else if (os_has_handler(&action) && action.sa_handler != wrapper()) {
        (void)sigaction(number, &action, NULL); /* it was installed behind libc's back */
    }
}

static plain_handler *install(int number, plain_handler *handler, int flags, sigset_t mask)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags, .sa_mask = mask};
    struct sigaction old;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

HAK_EXPORT plain_handler *signal(int number, plain_handler *handler)
{
    bool interrupts = is_valid(number) && load_relaxed(&table[number].interrupts);
    sigset_t itself = {0};
    if (sigaddset(&itself, number) != 0)
        return SIG_ERR;
    return install(number, handler, interrupts ? 0 : SA_RESTART, itself);
}

HAK_EXPORT plain_handler *bsd_signal(int number, plain_handler *handler)
{
    return signal(number, handler);
}

HAK_EXPORT plain_handler *ssignal(int number, plain_handler *handler)
{
    return signal(number, handler);
}

HAK_EXPORT plain_handler *sysv_signal(int number, plain_handler *handler)
{
    return install(number, handler, (int)SA_RESETHAND | SA_NODEFER, (sigset_t){0});
}

HAK_EXPORT plain_handler *__sysv_signal(int number, plain_handler *handler)
{
    return sysv_signal(number, handler);
}

HAK_EXPORT int siginterrupt(int number, int interrupt)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0)
        return -1;
    store_relaxed(&table[number].interrupts, interrupt != 0);
    if (interrupt != 0)
        action.sa_flags &= ~SA_RESTART;
    else
        action.sa_flags |= SA_RESTART;
    return sigaction(number, &action, NULL);
}

/* System V's: SIG_HOLD blocks the signal, anything else unblocks it; the answer is SIG_HOLD if it was blocked. */
HAK_EXPORT plain_handler *sigset(int number, plain_handler *disposition)
{
    sigset_t only;
    sigset_t before;
    struct sigaction old;
    if (sigemptyset(&only) != 0 || sigaddset(&only, number) != 0)
        return SIG_ERR;
    bool hold = disposition == SIG_HOLD;
    if (hold && sigaction(number, NULL, &old) != 0)
        return SIG_ERR;
    if (!hold && (old.sa_handler = install(number, disposition, 0, (sigset_t){0})) == SIG_ERR)
        return SIG_ERR;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): on Linux it is the calling thread's mask, as in glibc's sigset. */
    if (sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &only, &before) != 0)
        return SIG_ERR;
    return sigismember(&before, number) ? SIG_HOLD : old.sa_handler;
}
