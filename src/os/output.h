/*
 * A file that is written from start to end: it appears under its name when it is whole, or not at all. What is there and is
 * no ordinary file (a pipe, a terminal) is written as it is. By system calls only.
 */
#ifndef HAK_OS_OUTPUT_H
#define HAK_OS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "os/out.h"

enum { OUTPUT_PATH_MOST = 4096 };

/* Large: static, or in memory of its own. What is written goes to `out`. */
struct output {
    struct out out;
    bool in_place;
    char written[OUTPUT_PATH_MOST + 32]; /* the path of the file until it is whole */
    char text[16 * 1024];
};

/* Symbolic links are not followed; others may not read the file. Closed by output_close, whatever happens. */
void output_open(struct output *output, const char *path);

/* Appends the content of another file, if there is one. */
void output_copy(struct output *output, const char *path);

/* Returns the first error, an errno value; nothing was written after it. */
int output_close(struct output *output, const char *path);

#endif
