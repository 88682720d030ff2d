/* Calls of the kernel, past libc: no cancellation points, and errno is kept. */
#ifndef HAK_BASE_KERNEL_H
#define HAK_BASE_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the kernel's interface, whose headers are not everywhere (linux/futex.h). */
enum {
    FUTEX_WAIT_PRIVATE = 128,
    FUTEX_WAKE_PRIVATE = 1 | 128,
    FUTEX_CMP_REQUEUE_PRIVATE = 4 | 128,
    FUTEX_WAKE_OP_PRIVATE = 5 | 128,
};

/* The kernel's answer: a value, or -errno; errno itself is kept. */
static inline long kernel6(long number, long a, long b, long c, long d, long e, long f)
{
    int saved = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1)
        result = -(long)errno;
    errno = saved;
    return result;
}

static inline long kernel(long number, long a, long b, long c, long d, long e)
{
    return kernel6(number, a, b, c, d, e, 0);
}

static inline bool is_error(long result)
{
    return (unsigned long)result > (unsigned long)-4096L;
}

#endif
