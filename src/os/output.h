/*
 * A file that is written from start to end: it appears under its name when it is whole, or not at all. What is there and is
 * no ordinary file (a pipe, a terminal) is written as it is. By system calls only.
 */
#ifndef HAK_OS_OUTPUT_H
#define HAK_OS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The same, but what is there is replaced, whatever it is: nobody waits for who reads a pipe. */
void output_open_new(struct output *output, const char *path);

/* Which file a descriptor stands for; of a closed one, none. */
struct output_identity {
    uint64_t device;
    uint64_t file;
    bool is_ordinary;
};

struct output_identity output_identify(int file);

/* Is it the same file as before, one to whose end all is written, or no ordinary one? A program may have closed the descriptor, and got its
 * number for a file of its own. */
bool output_overwrites_nothing(int file, struct output_identity before);

/* Is there something at the path that is no ordinary file? */
bool output_is_special(const char *path);

/* Appends the content of another file. False: it cannot be opened. */
bool output_copy(struct output *output, const char *path);

/* Who reads a file and writes it anew, changed, asks for this before, so that of several processes at once none undoes what another
 * has written: a lock on its directory. Waits for it no longer than a fifth of a second. Returns what output_unlock wants; the lock
 * is not held if others keep it, or the directory cannot be opened. Before output_open. */
int output_lock(struct output *output, const char *path);
void output_unlock(int lock);

/* Returns the first error, an errno value; nothing was written after it. */
int output_close(struct output *output, const char *path);

#endif
