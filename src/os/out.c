#include "os/out.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "base/bits.h"
#include "base/fmt.h"
#include "base/kernel.h"
#include "base/write.h"

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

static void write_through(struct out *out, const char *bytes, size_t length)
{
    size_t written;
    if (out->error != 0)
        return;
    out->error = write_whole(out->file, bytes, length, &written);
    out->written += written;
}

static void write_out(struct out *out)
{
    write_through(out, out->text, out->length);
    out->length = 0;
}

/* Of a full buffer. */
static void make_room(struct out *out)
{
    if (out->file >= 0)
        write_out(out);
    else
        out->error = ENOSPC;
}

void out_write(struct out *out, const char *bytes, size_t length)
{
    while (length > 0 && out->error == 0) {
        size_t here = min_size(length, out->capacity - out->length);
        memcpy(out->text + out->length, bytes, here);
        out->length += here;
        bytes += here;
        length -= here;
        if (length > 0)
            make_room(out);
    }
}

void out_whole(struct out *out, const char *bytes, size_t length)
{
    write_out(out);
    write_through(out, bytes, length);
}

void out_print(struct out *out, const char *format, ...)
{
    char text[PRINT_MOST];
    va_list args;
    va_start(args, format);
    out_write(out, text, fmt_vprint(text, sizeof text, format, args));
    va_end(args);
}

int out_end(struct out *out)
{
    if (out->file < 0)
        return out->error;
    write_out(out);
    long closed = out->stays_open ? 0 : kernel(SYS_close, out->file, 0, 0, 0, 0);
    return out->error != 0 ? out->error : is_error(closed) ? (int)-closed : 0;
}
