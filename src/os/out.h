/* Text for a file or for memory, through a buffer of the caller's: no memory is allocated, no lock of libc's is taken. */
#ifndef HAK_OS_OUT_H
#define HAK_OS_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct out {
    char *text; /* the buffer */
    size_t capacity;
    size_t length;
    size_t written; /* to the file */
    int file;       /* -1: what is printed stays in the buffer */
    bool stays_open;
    int error;  /* 0, or the number of the first; what follows is dropped */
};

/* Into the buffer. What does not fit is ENOSPC. */
void out_to_memory(struct out *out, char *text, size_t capacity);

/* Into a file of the user's alone (0600): a new one, or one that is emptied, or at its end if `append`. No symbolic link is
 * followed. An error of opening is told by out_end. */
void out_to_file(struct out *out, const char *path, bool append, char *text, size_t capacity);

/* Into an open file, which out_end leaves open. */
void out_to_open_file(struct out *out, int file, char *text, size_t capacity);

/* As fmt_print; at most 1 KiB at once. */
void out_print(struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);

void out_write(struct out *out, const char *bytes, size_t length);

/* To the file past the buffer, in one call of the kernel's unless that takes less: so nobody else who appends to the file writes
 * into it. */
void out_whole(struct out *out, const char *bytes, size_t length);

/* Writes what is left, and closes the file. 0, or the number of the first error. */
int out_end(struct out *out);

#endif
