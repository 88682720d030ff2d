#include "base/write.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/kernel.h"

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
    (void)kernel(SYS_rt_sigpending, (long)&now, sizeof now, 0, 0, 0);
    return now;
}

static void take(signals which)
{
    const struct timespec at_once = {0};
    (void)kernel(SYS_rt_sigtimedwait, (long)&which, 0, (long)&at_once, sizeof which, 0);
}

long call_quietly(long number, long file, long a, long b)
{
    const signals both = only(SIGPIPE) | only(SIGXFSZ);
    signals before = 0;
    bool blocked = !is_error(kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&both, (long)&before, sizeof both, 0));
    /* One that waits already is the program's own. */
    signals own = (before & both) != 0 ? pending() : 0;
    long result = kernel(number, file, a, b, 0, 0);
    if (blocked && (sent_with(result) & ~own) != 0)
        take(sent_with(result));
    if (blocked)
        (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0);
    return result;
}

long write_quietly(int file, const struct iovec *parts, int count)
{
    return call_quietly(SYS_writev, file, (long)parts, count);
}

enum { WAITS_MOST = 100, WAIT_MS = 10 };

/* Of a pipe that is full, and does not block who writes to it. In all, a process waits so long and no longer. */
static bool wait_for_reader(int file)
{
    static uint32_t waited;
    struct pollfd ready = {.fd = file, .events = POLLOUT};
    struct timespec step = {.tv_nsec = WAIT_MS * 1000000L}; /* the kernel writes what is left of it */
    if (add_relaxed(&waited, 1u) >= WAITS_MOST)
        return false;
    (void)kernel(SYS_ppoll, (long)&ready, 1, (long)&step, 0, 0);
    return true;
}

int write_whole(int file, const char *bytes, size_t length, size_t *written)
{
    *written = 0;
    while (*written < length) {
        const struct iovec rest = {(void *)(uintptr_t)(bytes + *written), length - *written};
        long n = write_quietly(file, &rest, 1);
        if (n == 0)
            return EIO;
        if (is_error(n) && n != -EINTR && !(n == -EAGAIN && wait_for_reader(file)))
            return (int)-n;
        *written += is_error(n) ? 0 : (size_t)n;
    }
    return 0;
}
