/* What linkers give each program and library to know it by, wherever it lies. */
#ifndef HAK_OS_BUILD_ID_H
#define HAK_OS_BUILD_ID_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "os/lines.h"

enum { BUILD_ID_MOST = 64 };

/* Of the first of these notes that is a build id, in hexadecimal, into `id`, of 2 * BUILD_ID_MOST + 1 bytes; "" if none is. (the gABI's note
 * sections; GNU's NT_GNU_BUILD_ID) */
void build_id_in_notes(const char *notes, size_t bytes, char *id);

enum { BUILD_ID_FILE_MOST = 64, BUILD_ID_HEADS = 2048, BUILD_ID_NOTES = 1024 };

/* What os_each_build_id needs. Large: in memory of its own. */
struct build_ids {
    struct lines lines;
    char id[2 * BUILD_ID_MOST + 1];
    char file[BUILD_ID_FILE_MOST]; /* device and number of the file whose beginning was seen last */
    uintptr_t start;               /* where that is mapped; 0: it has been looked at */
    _Alignas(ElfW(Ehdr)) char head[BUILD_ID_HEADS];
    _Alignas(ElfW(Nhdr)) char notes[BUILD_ID_NOTES];
};

/* Calls `look` for each file that is mapped from its beginning on, with code, and has a build id: with the address of that beginning. It is
 * what the kernel says, for the loader's lists may be in the middle of a change; what is there is copied, for it may go. Where neither may be
 * read there are none. */
void os_each_build_id(struct build_ids *ids, void (*look)(uintptr_t start, const char *id, void *argument), void *argument);

#endif
