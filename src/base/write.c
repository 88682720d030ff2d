#include "base/write.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A set of signals as the kernel has it. */
typedef uint64_t signals;

static signals only(int signal)
{
    return (signals)1 << (signal - 1);
}

/* What the kernel sends to a thread besides, when its call has failed so. */
static signals sent_with(long result)
{
    return result == -EPIPE ? only(SIGPIPE) : result == -EFBIG ? only(SIGXFSZ) : 0;
}

static signals pending(void)
{
    signals now = 0;
    (void)syscall(SYS_rt_sigpending, &now, sizeof now);
    return now;
}

static void take(signals which)
{
    const struct timespec at_once = {0};
    (void)syscall(SYS_rt_sigtimedwait, &which, NULL, &at_once, sizeof which);
}

long write_quietly(int file, const struct iovec *parts, int count)
{
    const signals both = only(SIGPIPE) | only(SIGXFSZ);
    signals before = 0;
    int saved = errno;
    bool blocked = syscall(SYS_rt_sigprocmask, SIG_BLOCK, &both, &before, sizeof both) == 0;
    /* One that waits already is the program's own. */
    signals own = (before & both) != 0 ? pending() : 0;
    long result = syscall(SYS_writev, file, parts, (long)count);
    if (result < 0)
        result = -(long)errno;
    if (blocked && (sent_with(result) & ~own) != 0)
        take(sent_with(result));
    if (blocked)
        (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    errno = saved;
    return result;
}
