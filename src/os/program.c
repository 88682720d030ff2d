#include "os/program.h"

#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "base/kernel.h"
#include "os/os.h"

/* A static program that may lie anywhere has no PT_PHDR: its headers are on the first page of what was loaded of the file's beginning. */
uintptr_t os_program_base(const void *of, size_t count)
{
    const ElfW(Phdr) *headers = of;
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_PHDR)
            return (uintptr_t)headers - headers[i].p_vaddr;
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0)
            return align_down((uintptr_t)headers, os_page_size()) - headers[i].p_vaddr;
    return 0;
}

/* Of a file that is no longer there, as after an upgrade, the kernel says so behind its path. */
static void strip_deleted(char *path, size_t length)
{
    static const char deleted[] = " (deleted)";
    size_t more = sizeof deleted - 1;
    struct stat status;
    if (length > more && memcmp(path + length - more, deleted, more) == 0
        && is_error(kernel(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, AT_SYMLINK_NOFOLLOW, 0)))
        path[length - more] = '\0';
}

const char *os_own_file(enum os_own which)
{
    static const char of_process[][19] = {"/proc/self/exe", "/proc/self/maps", "/proc/self/pagemap"};
    static const char of_thread[][26] = {"/proc/thread-self/exe", "/proc/thread-self/maps", "/proc/thread-self/pagemap"};
    char first;
    bool is_there = !is_error(kernel(SYS_readlinkat, AT_FDCWD, (long)of_process[OS_OWN_PROGRAM], (long)&first, 1, 0));
    return is_there ? of_process[which] : of_thread[which];
}

void os_program(struct os_program *program)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = headers != NULL ? getauxval(AT_PHNUM) : 0;
    uintptr_t base = os_program_base(headers, count);
    struct stat status = {0};
    memset(program, 0, sizeof *program);
    const char *file = os_own_file(OS_OWN_PROGRAM);
    long length = kernel(SYS_readlinkat, AT_FDCWD, (long)file, (long)program->path, PROGRAM_PATH_MOST - 1, 0);
    program->path[is_error(length) ? 0 : length] = '\0';
    strip_deleted(program->path, strlen(program->path));
    if (!is_error(kernel(SYS_newfstatat, AT_FDCWD, (long)file, (long)&status, 0, 0)))
        program->bytes = (uint64_t)status.st_size;
    for (size_t i = 0; i < count && program->build_id[0] == '\0'; i++)
        if (headers[i].p_type == PT_NOTE)
            build_id_in_notes((const char *)(base + headers[i].p_vaddr), headers[i].p_memsz, program->build_id);
}
