#include "os/lines.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/kernel.h"

int file_open(const char *path)
{
    return (int)kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0);
}

void file_close(int file)
{
    (void)kernel(SYS_close, file, 0, 0, 0, 0);
}

size_t file_read(int file, char *to, size_t most)
{
    long got = kernel(SYS_read, file, (long)to, (long)most, 0, 0);
    return is_error(got) ? 0 : (size_t)got;
}

long file_load(const char *path, char *to, size_t most)
{
    int file = file_open(path);
    size_t length = 0;
    long got = is_error(file) ? file : 1;
    while (got > 0) {
        char beyond;
        bool full = length == most;
        got = kernel(SYS_read, file, (long)(full ? &beyond : to + length), (long)(full ? 1 : most - length), 0, 0);
        if (got > 0 && full)
            got = -EFBIG;
        else if (got > 0)
            length += (size_t)got;
        else if (got == -EINTR)
            got = 1;
    }
    if (!is_error(file))
        file_close(file);
    return got < 0 ? got : (long)length;
}

bool lines_open(struct lines *lines, const char *path)
{
    lines->file = file_open(path);
    lines->begin = lines->end = 0;
    lines->overlong = false;
    return lines->file >= 0;
}

void lines_close(struct lines *lines)
{
    file_close(lines->file);
}

static bool read_more(struct lines *lines)
{
    if (lines->begin == 0 && lines->end == LINES_TEXT_MOST) {
        lines->overlong = true;
        lines->begin = LINES_TEXT_MOST;
    }
    memmove(lines->text, lines->text + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->begin = 0;
    size_t got = file_read(lines->file, lines->text + lines->end, LINES_TEXT_MOST - lines->end);
    lines->end += got;
    return got > 0;
}

char *lines_next(struct lines *lines)
{
    for (;;) {
        char *line = lines->text + lines->begin;
        char *end = memchr(line, '\n', lines->end - lines->begin);
        if (end == NULL) {
            if (!read_more(lines))
                return NULL;
            continue;
        }
        *end = '\0';
        lines->begin = (size_t)(end + 1 - lines->text);
        if (!lines->overlong)
            return line;
        lines->overlong = false;
    }
}

uintptr_t lines_hex(const char *text, const char **rest)
{
    uintptr_t value = 0;
    for (;; text++) {
        if (*text >= '0' && *text <= '9')
            value = value * 16 + (uintptr_t)(*text - '0');
        else if (*text >= 'a' && *text <= 'f')
            value = value * 16 + (uintptr_t)(*text - 'a') + 10;
        else
            break;
    }
    *rest = text;
    return value;
}
