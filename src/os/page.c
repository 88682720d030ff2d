#include "os/page.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/kernel.h"
#include "base/write.h"
#include "os/lines.h"
#include "os/os.h"

void page_remove(const char *path)
{
    (void)kernel(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0);
}

void *page_make(const char *path, size_t bytes, int *error)
{
    page_remove(path);
    long file = kernel(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600, 0);
    if (is_error(file)) {
        *error = (int)-file;
        return NULL;
    }
    long at = call_quietly(SYS_ftruncate, file, (long)bytes, 0);
    if (!is_error(at))
        at = kernel6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)kernel(SYS_close, file, 0, 0, 0, 0);
    if (is_error(at)) {
        *error = (int)-at;
        page_remove(path);
        return NULL;
    }
    return (void *)at;
}

bool page_has_room(char *at, size_t bytes)
{
    const char *limit = at + bytes;
    while (at < limit) {
        if (is_error(kernel(SYS_getcpu, (long)at, 0, 0, 0, 0)))
            return false;
        at = (char *)align_down((uintptr_t)at, os_page_size()) + os_page_size();
    }
    return true;
}

void page_forget(void *page, size_t bytes)
{
    (void)kernel(SYS_munmap, (long)page, (long)bytes, 0, 0, 0);
}

/* The name of the program, in brackets, may hold brackets and blanks: fields are counted from the last bracket on. */
uint64_t page_process_start(void)
{
    enum { FIELD = 22, FIRST_AFTER_NAME = 3 };
    char text[1024];
    int file = file_open("/proc/self/stat");
    if (file < 0)
        return 0;
    size_t length = file_read(file, text, sizeof text - 1);
    file_close(file);
    text[length] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = FIRST_AFTER_NAME - 1; at != NULL && field < FIELD; field++)
        at = strchr(at + 1, ' ');
    uint64_t start = 0;
    for (at = at != NULL ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
        start = start * 10 + (uint64_t)(*at - '0');
    return start;
}
