#include "os/output.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "base/fmt.h"
#include "os/kernel.h"
#include "os/lines.h"

enum { PRINT_MOST = 512, OPEN_FLAGS = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY };

static void note_error(struct output *output, long result)
{
    if (is_error(result) && output->error == 0)
        output->error = (int)-result;
}

/* Is there something at the path that must not be replaced? */
static bool is_special(const char *path)
{
    struct stat status;
    return !is_error(kernel(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, AT_SYMLINK_NOFOLLOW, 0))
           && !S_ISREG(status.st_mode);
}

static long open_new(const char *path)
{
    long file = kernel(SYS_openat, AT_FDCWD, (long)path, OPEN_FLAGS | O_CREAT | O_EXCL, 0600, 0);
    if (file != -EEXIST)
        return file;
    /* Of a process with this number, which has not come to its end. */
    (void)kernel(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0);
    return kernel(SYS_openat, AT_FDCWD, (long)path, OPEN_FLAGS | O_CREAT | O_EXCL, 0600, 0);
}

void output_open(struct output *output, const char *path)
{
    size_t length = strlen(path);
    output->file = -1;
    output->error = 0;
    output->used = 0;
    output->in_place = is_special(path);
    if (length == 0 || length >= OUTPUT_PATH_MOST) {
        output->error = length == 0 ? ENOENT : ENAMETOOLONG;
        return;
    }
    int process = (int)kernel(SYS_getpid, 0, 0, 0, 0, 0);
    (void)fmt_print(output->written, sizeof output->written, "%s.%d.tmp", path, process);
    long file = output->in_place ? kernel(SYS_openat, AT_FDCWD, (long)path, OPEN_FLAGS, 0, 0) : open_new(output->written);
    note_error(output, file);
    output->file = is_error(file) ? -1 : (int)file;
}

static void flush(struct output *output)
{
    for (size_t done = 0; done < output->used && output->error == 0;) {
        long n = kernel(SYS_write, output->file, (long)(output->text + done), (long)(output->used - done), 0, 0);
        if (n == -EINTR)
            continue;
        note_error(output, n != 0 ? n : -EIO);
        done += is_error(n) ? 0 : (size_t)n;
    }
    output->used = 0;
}

void output_write(struct output *output, const char *bytes, size_t length)
{
    while (length > 0 && output->error == 0) {
        size_t here = min_size(length, sizeof output->text - output->used);
        memcpy(output->text + output->used, bytes, here);
        output->used += here;
        bytes += here;
        length -= here;
        if (output->used == sizeof output->text)
            flush(output);
    }
}

void output_print(struct output *output, const char *format, ...)
{
    char text[PRINT_MOST];
    va_list args;
    va_start(args, format);
    output_write(output, text, fmt_vprint(text, sizeof text, format, args));
    va_end(args);
}

void output_copy(struct output *output, const char *path)
{
    int file = file_open(path);
    if (file < 0)
        return;
    do {
        flush(output);
        output->used = file_read(file, output->text, sizeof output->text);
    } while (output->used > 0 && output->error == 0);
    file_close(file);
}

int output_close(struct output *output, const char *path)
{
    flush(output);
    if (output->file < 0)
        return output->error;
    note_error(output, kernel(SYS_close, output->file, 0, 0, 0, 0));
    if (output->in_place)
        return output->error;
    if (output->error == 0)
        note_error(output, kernel(SYS_renameat2, AT_FDCWD, (long)output->written, AT_FDCWD, (long)path, 0));
    if (output->error != 0)
        (void)kernel(SYS_unlinkat, AT_FDCWD, (long)output->written, 0, 0, 0);
    return output->error;
}
