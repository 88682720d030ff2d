/* Writing to a file of the user's without what a failure does to a process besides: who writes to a pipe that nobody reads gets no SIGPIPE,
 * and who writes beyond the limit on a file's size (RLIMIT_FSIZE) no SIGXFSZ. Either would end a program that has asked for nothing.
 * errno is kept. No cancellation points, as libc's are: malloc and free are none. Async-signal-safe. */
#ifndef HAK_BASE_WRITE_H
#define HAK_BASE_WRITE_H

#include <stddef.h>
#include <sys/uio.h>

/* The system call `number` on a file, without the signal that the kernel sends when it fails. Returns what the kernel does. */
long call_quietly(long number, long file, long a, long b);

/* As writev(2). Returns the bytes, which may be less than all, or -errno. */
long write_quietly(int file, const struct iovec *parts, int count);

/* All of it, in as many calls as that takes. Where a pipe is full, and does not block who writes, it waits for the reader: a second in the
 * process's life. Returns 0, or the number of the first error, EIO if the kernel takes nothing; *written bytes were written. */
int write_whole(int file, const char *bytes, size_t length, size_t *written);

#endif
