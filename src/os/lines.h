/* Text files of the kernel's, read line by line, without a byte of memory that is not the reader's. */
#ifndef HAK_OS_LINES_H
#define HAK_OS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINES_TEXT_MOST = 4096 };

/* Large: static, where a stack may be small. */
struct lines {
    int file;
    size_t begin; /* of what has been read and not yet looked at */
    size_t end;
    bool overlong; /* the line at `begin` does not fit, and this is the rest of it */
    char text[LINES_TEXT_MOST];
};

/* False: the file cannot be opened; `file` says why, as file_open does. */
bool lines_open(struct lines *lines, const char *path);

/* The next line without its end; NULL after the last. Lines that do not fit are left out. */
char *lines_next(struct lines *lines);

void lines_close(struct lines *lines);

/* The number in base 16 with which the text begins, and what follows it. */
uintptr_t lines_hex(const char *text, const char **rest);

/* A file's number, or below 0 an error's. */
int file_open(const char *path);
void file_close(int file);

/* Bytes read, 0 at the end or after an error. */
size_t file_read(int file, char *to, size_t most);

/* The whole content of a file. Returns the bytes, or below 0 an error's number: -EFBIG if it is longer than `most`. Of what is
 * no ordinary file, what can be read without waiting. */
long file_load(const char *path, char *to, size_t most);

#endif
