#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fmt.h"

void (*fail_also)(void);

static void write_line(const char *kind, const char *format, va_list args)
{
    char line[512];
    size_t length = fmt_print(line, sizeof line, "%s", kind);
    length += fmt_vprint(line + length, sizeof line - length - 1, format, args);
    line[length++] = '\n';
    for (size_t done = 0; done < length;) {
        ssize_t n = write(STDERR_FILENO, line + done, length - done);
        if (n < 0 && errno != EINTR)
            return;
        done += n > 0 ? (size_t)n : 0;
    }
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
    int saved = errno;
    va_list args;
    va_start(args, format);
    write_line("hakmem: warning: ", format, args);
    va_end(args);
    errno = saved;
}

void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line("", format, args);
    va_end(args);
}
