#include "os/output.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fmt.h"
#include "base/kernel.h"
#include "os/lines.h"
#include "os/os.h"

enum { LOCK_TRIES = 40, LOCK_WAIT_MS = 5, NAMES_TRIED = 8 };

enum { OPEN_FLAGS = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY };

static void note_error(struct output *output, long result)
{
    if (is_error(result) && output->out.error == 0)
        output->out.error = (int)-result;
}

bool output_is_special(const char *path)
{
    struct stat status;
    return !is_error(kernel(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, AT_SYMLINK_NOFOLLOW, 0))
           && !S_ISREG(status.st_mode);
}

struct output_identity output_identify(int file)
{
    struct stat status = {0};
    (void)kernel(SYS_fstat, file, (long)&status, 0, 0, 0);
    return (struct output_identity){status.st_dev, status.st_ino, S_ISREG(status.st_mode)};
}

bool output_overwrites_nothing(int file, struct output_identity before)
{
    struct output_identity now = output_identify(file);
    long flags = kernel(SYS_fcntl, file, F_GETFL, 0, 0, 0);
    return !now.is_ordinary || (now.device == before.device && now.file == before.file) || (!is_error(flags) && (flags & O_APPEND) != 0);
}

/* Under a name that no other process takes for its own: in another container there may be one with this number. */
static long open_new(struct output *output, const char *path)
{
    int process = (int)kernel(SYS_getpid, 0, 0, 0, 0, 0);
    uint64_t number = os_random();
    long file = -EEXIST;
    for (int i = 0; i < NAMES_TRIED && file == -EEXIST; i++, number++) {
        (void)fmt_print(output->written, sizeof output->written, "%s.%d-%lx.tmp", path, process, (unsigned long)number);
        file = kernel(SYS_openat, AT_FDCWD, (long)output->written, OPEN_FLAGS | O_CREAT | O_EXCL, 0600, 0);
    }
    return file;
}

/* O_CREAT: a pipe that another user has put into a directory for everybody is then refused by the kernel (fs.protected_fifos), instead of
 * being waited for. */
static long open_special(const char *path)
{
    return kernel(SYS_openat, AT_FDCWD, (long)path, OPEN_FLAGS | O_CREAT, 0600, 0);
}

static void open_file(struct output *output, const char *path, bool in_place)
{
    size_t length = strlen(path);
    long file;
    output->in_place = in_place;
    if (length == 0 || length >= OUTPUT_PATH_MOST)
        file = length == 0 ? -ENOENT : -ENAMETOOLONG;
    else
        file = in_place ? open_special(path) : open_new(output, path);
    out_to_open_file(&output->out, is_error(file) ? -1 : (int)file, output->text, sizeof output->text);
    note_error(output, file);
}

void output_open(struct output *output, const char *path)
{
    open_file(output, path, output_is_special(path));
}

void output_open_new(struct output *output, const char *path)
{
    open_file(output, path, false);
}

bool output_copy(struct output *output, const char *path)
{
    char piece[1024];
    size_t got;
    int file = file_open(path);
    if (file < 0)
        return false;
    while (output->out.error == 0 && (got = file_read(file, piece, sizeof piece)) > 0)
        out_write(&output->out, piece, got);
    file_close(file);
    return true;
}

int output_lock(struct output *output, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    if (length == 0 || length >= sizeof output->written)
        return -1;
    memcpy(output->written, path, length);
    output->written[length] = '\0';
    int directory = (int)kernel(SYS_openat, AT_FDCWD, (long)output->written, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0);
    for (int i = 0; i < LOCK_TRIES && kernel(SYS_flock, directory, LOCK_EX | LOCK_NB, 0, 0, 0) == -EWOULDBLOCK; i++)
        os_sleep(LOCK_WAIT_MS);
    return directory;
}

/* A child that was forked meanwhile has the directory open too: to close it would not be enough. */
void output_unlock(int lock)
{
    if (lock < 0)
        return;
    (void)kernel(SYS_flock, lock, LOCK_UN, 0, 0, 0);
    file_close(lock);
}

int output_close(struct output *output, const char *path)
{
    int file = output->out.file;
    (void)out_end(&output->out);
    if (file < 0)
        return output->out.error;
    note_error(output, kernel(SYS_close, file, 0, 0, 0, 0));
    if (output->in_place)
        return output->out.error;
    if (output->out.error == 0)
        note_error(output, kernel(SYS_renameat2, AT_FDCWD, (long)output->written, AT_FDCWD, (long)path, 0));
    if (output->out.error != 0)
        (void)kernel(SYS_unlinkat, AT_FDCWD, (long)output->written, 0, 0, 0);
    return output->out.error;
}
