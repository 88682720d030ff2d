#include "os/tasks.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/kernel.h"
#include "os/lines.h"

/* Of the kernel's interface (getdents64(2)). */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

void os_each_task(void (*look)(const char *task, void *argument), void *argument)
{
    char buffer[1024] ALIGNED(8);
    int directory = (int)kernel(SYS_openat, AT_FDCWD, (long)"/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0);
    if (directory < 0)
        return;
    for (long got; (got = kernel(SYS_getdents64, directory, (long)buffer, sizeof buffer, 0, 0)) > 0;) {
        const struct entry *entry;
        for (long at = 0; at < got; at += entry->length) {
            entry = (const struct entry *)(void *)(buffer + at);
            if (entry->name[0] != '.')
                look(entry->name, argument);
        }
    }
    file_close(directory);
}
