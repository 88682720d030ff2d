#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/fmt.h"
#include "base/kernel.h"
#include "base/write.h"

void (*fail_also)(void);

enum { LINE_MOST = 512, PATH_MOST = 4096 };

/* "": stderr. */
static char report_path[PATH_MOST];

static size_t make_line(char line[LINE_MOST], const char *kind, const char *format, va_list args)
{
    size_t length = fmt_print(line, LINE_MOST, "%s", kind);
    length += fmt_vprint(line + length, LINE_MOST - length - 1, format, args);
    line[length++] = '\n';
    return length;
}

/* False: not all is written. */
static bool write_all(int file, const char *line, size_t length)
{
    size_t written;
    return write_whole(file, line, length, &written) == 0;
}

/* The same, of several pieces: in one call, unless the kernel takes less than all. */
static bool write_parts(int file, const struct iovec *parts, int count, long wanted)
{
    long written = write_quietly(file, parts, count);
    if (written == wanted)
        return true;
    for (int i = 0; i < count; i++) {
        size_t done = written <= 0 ? 0 : min_size((size_t)written, parts[i].iov_len);
        written -= (long)done;
        if (!write_all(file, (const char *)parts[i].iov_base + done, parts[i].iov_len - done))
            return false;
    }
    return true;
}

static void write_line(const char *kind, const char *format, va_list args)
{
    char line[LINE_MOST];
    (void)write_all(STDERR_FILENO, line, make_line(line, kind, format, args));
}

bool fail_report_to(const char *path)
{
    size_t length = strlen(path);
    if (path[0] != '/' || length >= sizeof report_path)
        return false;
    memcpy(report_path, path, length + 1);
    return true;
}

const char *fail_report_file(void)
{
    return report_path;
}

/* Opened anew for each line: a program may close all that it does not know, and open files of its own in their place. */
static int open_report(void)
{
    if (report_path[0] == '\0')
        return -1;
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
    return (int)kernel(SYS_openat, AT_FDCWD, (long)report_path, flags, 0600, 0);
}

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line("hakmem: fatal: ", format, args);
    va_end(args);
    if (fail_also != NULL)
        fail_also();
    abort();
}

void warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line("hakmem: warning: ", format, args);
    va_end(args);
}

/* What the report's file does not take goes to stderr. */
static void report_line(const struct iovec *parts, int count)
{
    int file = open_report();
    long wanted = 0;
    for (int i = 0; i < count; i++)
        wanted += (long)parts[i].iov_len;
    if (file < 0 || !write_parts(file, parts, count, wanted))
        (void)write_parts(STDERR_FILENO, parts, count, wanted);
    if (file >= 0)
        (void)kernel(SYS_close, file, 0, 0, 0, 0);
}

void note(const char *format, ...)
{
    char line[LINE_MOST];
    va_list args;
    va_start(args, format);
    size_t length = make_line(line, "", format, args);
    va_end(args);
    report_line(&(struct iovec){line, length}, 1);
}

void note_joined(const char *before, const char *middle, const char *after)
{
    const struct iovec parts[] = {
        {(void *)before, strlen(before)}, {(void *)middle, strlen(middle)}, {(void *)after, strlen(after)}, {(void *)"\n", 1}};
    report_line(parts, sizeof parts / sizeof parts[0]);
}
