#include "os/build_id.h"

#include <string.h>

#include "base/bits.h"
#include "os/frame.h"
#include "os/os.h"
#include "os/program.h"

void build_id_in_notes(const char *notes, size_t bytes, char *id)
{
    static const char digits[] = "0123456789abcdef";
    *id = '\0';
    while (bytes >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)notes;
        size_t content = sizeof *note + align_up(note->n_namesz, 4);
        size_t whole = content + align_up(note->n_descsz, 4);
        if (whole > bytes)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(notes + sizeof *note, "GNU", 4) == 0) {
            for (size_t i = 0; i < min_size(note->n_descsz, BUILD_ID_MOST); i++) {
                unsigned char byte = (unsigned char)notes[content + i];
                *id++ = digits[byte >> 4];
                *id++ = digits[byte & 15];
            }
            *id = '\0';
            return;
        }
        notes += whole;
        bytes -= whole;
    }
}

/* The program headers of the file that is mapped there; NULL: it is no ELF file of this machine's kind, or has too many. */
static const ElfW(Phdr) *read_headers(struct build_ids *ids, size_t *count)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)ids->head;
    size_t got = os_read(ids->start, ids->head, sizeof ids->head);
    if (got < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(ElfW(Phdr)))
        return NULL;
    *count = header->e_phnum;
    bool is_there = header->e_phoff % sizeof(uintptr_t) == 0 && header->e_phoff <= got
        && *count <= (got - header->e_phoff) / sizeof(ElfW(Phdr));
    return is_there ? (const ElfW(Phdr) *)(const void *)(ids->head + header->e_phoff) : NULL;
}

static void read_id(struct build_ids *ids)
{
    size_t count;
    const ElfW(Phdr) *headers = read_headers(ids, &count);
    uintptr_t base = ids->start;
    ids->id[0] = '\0';
    if (headers == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_filesz > 0 && headers[i].p_offset < os_page_size()) {
            base = ids->start - (headers[i].p_vaddr - headers[i].p_offset);
            break;
        }
    for (size_t i = 0; i < count && ids->id[0] == '\0'; i++)
        if (headers[i].p_type == PT_NOTE) {
            size_t wanted = min_size(headers[i].p_filesz, sizeof ids->notes);
            build_id_in_notes(ids->notes, os_read(base + headers[i].p_vaddr, ids->notes, wanted), ids->id);
        }
}

/* True: it is mapped with code in it, and its beginning has not been looked at. A line is "START-END PERMISSIONS OFFSET DEVICE NUMBER PATH". */
static bool is_new_code(struct build_ids *ids, const char *line)
{
    const char *rest;
    uintptr_t start = lines_hex(line, &rest);
    const char *permissions = strchr(rest, ' ');
    if (permissions == NULL || strlen(permissions) < sizeof " r-xp ")
        return false;
    uintptr_t offset = lines_hex(permissions + sizeof " r-xp " - 1, &rest);
    const char *number = *rest == ' ' ? strchr(rest + 1, ' ') : NULL;
    if (number == NULL || strchr(number, '/') == NULL)
        return false;
    size_t length = (size_t)(number - rest) + 1 + strspn(number + 1, "0123456789");
    if (length >= sizeof ids->file)
        return false;
    bool is_same = strncmp(ids->file, rest, length) == 0 && ids->file[length] == '\0';
    if (offset == 0 && permissions[1] == 'r') {
        memcpy(ids->file, rest, length);
        ids->file[length] = '\0';
        ids->start = start;
        is_same = true;
    }
    return is_same && ids->start != 0 && permissions[3] == 'x';
}

void os_each_build_id(struct build_ids *ids, void (*look)(uintptr_t start, const char *id, void *argument), void *argument)
{
    ids->file[0] = '\0';
    ids->start = 0;
    if (!lines_open(&ids->lines, os_own_file(OS_OWN_MAPS)))
        return;
    for (const char *line; (line = lines_next(&ids->lines)) != NULL;) {
        if (!is_new_code(ids, line))
            continue;
        read_id(ids);
        if (ids->id[0] != '\0')
            look(ids->start, ids->id, argument);
        ids->start = 0;
    }
    lines_close(&ids->lines);
}
