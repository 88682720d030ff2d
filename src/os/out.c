#include "os/out.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "base/fmt.h"
#include "os/kernel.h"

enum { PRINT_MOST = 1024 };

void out_to_memory(struct out *out, char *text, size_t capacity)
{
    *out = (struct out){.text = text, .capacity = capacity, .file = -1};
}

void out_to_file(struct out *out, const char *path, bool append, char *text, size_t capacity)
{
    *out = (struct out){.text = text, .capacity = capacity};
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | (append ? O_APPEND : O_TRUNC);
    long file = kernel(SYS_openat, AT_FDCWD, (long)path, flags, 0600, 0);
    if (is_error(file))
        out->error = (int)-file;
    out->file = (int)file;
}

void out_to_open_file(struct out *out, int file, char *text, size_t capacity)
{
    *out = (struct out){.text = text, .capacity = capacity, .file = file, .stays_open = true};
}

static void write_out(struct out *out)
{
    for (size_t done = 0; done < out->length && out->error == 0;) {
        long n = kernel(SYS_write, out->file, (long)(out->text + done), (long)(out->length - done), 0, 0);
        if (is_error(n) && n != -EINTR)
            out->error = (int)-n;
        done += n > 0 ? (size_t)n : 0;
    }
    out->length = 0;
}

void out_print(struct out *out, const char *format, ...)
{
    char text[PRINT_MOST];
    va_list args;
    va_start(args, format);
    size_t length = fmt_vprint(text, sizeof text, format, args);
    va_end(args);
    if (out->file >= 0 && length > out->capacity - out->length)
        write_out(out);
    if (length > out->capacity - out->length)
        out->error = out->error != 0 ? out->error : ENOSPC;
    if (out->error != 0)
        return;
    memcpy(out->text + out->length, text, length);
    out->length += length;
}

int out_end(struct out *out)
{
    if (out->file < 0)
        return out->error;
    write_out(out);
    long closed = out->stays_open ? 0 : kernel(SYS_close, out->file, 0, 0, 0, 0);
    return out->error != 0 ? out->error : is_error(closed) ? (int)-closed : 0;
}
