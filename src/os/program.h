/* Which program this is. */
#ifndef HAK_OS_PROGRAM_H
#define HAK_OS_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "os/build_id.h"

enum { PROGRAM_PATH_MOST = 4096 };

/* Large: static, where a stack may be small. */
struct os_program {
    char path[PROGRAM_PATH_MOST];         /* of its file, which may have been replaced; "" if the kernel does not say */
    char build_id[2 * BUILD_ID_MOST + 1]; /* in hexadecimal; "" if the linker has made none */
    uint64_t bytes;                       /* of its file */
};

void os_program(struct os_program *program);

/* What the kernel says of the calling process's memory. */
enum os_own { OS_OWN_PROGRAM, OS_OWN_MAPS, OS_OWN_PAGES };

/* The path of such a file. Once the first thread has ended, by pthread_exit, only the others' are not empty. */
const char *os_own_file(enum os_own which);

/* What is added to the addresses in the program's file, of which the kernel says these program headers (AT_PHDR). */
uintptr_t os_program_base(const void *headers, size_t count);

#endif
