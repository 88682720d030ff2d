/* Writing to a file of the user's without what a failure does to a process besides. */
#ifndef HAK_BASE_WRITE_H
#define HAK_BASE_WRITE_H

#include <sys/uio.h>

/* As writev(2), but who writes to a pipe that nobody reads gets no SIGPIPE, and who writes beyond the limit on a file's size
 * (RLIMIT_FSIZE) no SIGXFSZ: either would end a program that has asked for nothing. Returns the bytes, which may be less than all, or
 * -errno; errno is kept. No cancellation point, as libc's is: malloc and free are none. Async-signal-safe. */
long write_quietly(int file, const struct iovec *parts, int count);

#endif
