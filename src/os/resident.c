/* What is in memory, page by page. */
#include <string.h>
#include <sys/auxv.h>

#include "base/kernel.h"
#include "os/os.h"

enum { LOOK_PAGES = 512 };

/* A stretch of memory, and of each of the kernel's pages in it whether it is in memory (bit 0). */
struct look {
    char *at;
    size_t bytes;
    unsigned char in_memory[LOOK_PAGES];
};

/* Where tests make pages larger, and under an emulator, the kernel's may be smaller than os_page_size says. */
static size_t kernel_page(void)
{
    return getauxval(AT_PAGESZ);
}

/* Looks at the first of these pages. False: the kernel does not say. Emulators count their host's pages, and fill in more, which
 * are not below 4 KiB. */
static bool look_at(struct look *look, char *at, size_t bytes)
{
    look->at = at;
    look->bytes = min_size(bytes, 4 * KIB * LOOK_PAGES);
    return !is_error(kernel(SYS_mincore, (long)at, (long)look->bytes, (long)look->in_memory, 0, 0));
}

size_t os_resident(const void *at, size_t bytes)
{
    struct look look;
    size_t page = kernel_page();
    size_t resident = 0;
    for (size_t done = 0; done < bytes && look_at(&look, (char *)(uintptr_t)at + done, bytes - done); done += look.bytes)
        for (size_t i = 0; i < look.bytes / page; i++)
            resident += (look.in_memory[i] & 1) != 0 ? page : 0;
    return resident;
}

/* Is any part of the page at this distance in memory? */
static bool holds(const struct look *look, size_t distance)
{
    size_t page = kernel_page();
    bool some = false;
    for (size_t at = distance; at < distance + os_page_size(); at += page)
        some |= (look->in_memory[at / page] & 1) != 0;
    return some;
}

/* Where the pages end that are as the one at this distance: in memory, or not. */
static size_t end_of_alike(const struct look *look, size_t distance)
{
    bool in_memory = holds(look, distance);
    size_t end = distance + os_page_size();
    while (end < look->bytes && holds(look, end) == in_memory)
        end += os_page_size();
    return end;
}

/* Those that are not in memory may be in swap. True: not any more, and they read as zero. */
static bool are_absent(const struct look *look, size_t distance, size_t end)
{
    return !holds(look, distance) && os_purge(look->at + distance, end - distance);
}

/* Whatever the kernel has said: what is passed over reads as zero. */
bool os_each_present(void *at, size_t bytes, bool (*act)(void *pages, size_t bytes))
{
    struct look look;
    size_t end;
    for (size_t done = 0; done < bytes; done += look.bytes) {
        if (!look_at(&look, (char *)at + done, bytes - done))
            memset(look.in_memory, 1, sizeof look.in_memory);
        for (size_t distance = 0; distance < look.bytes; distance = end) {
            end = end_of_alike(&look, distance);
            if (!are_absent(&look, distance, end) && !act(look.at + distance, end - distance))
                return false;
        }
    }
    return true;
}

static bool clear_pages(void *pages, size_t bytes)
{
    memset(pages, 0, bytes);
    return true;
}

void os_clear(void *at, size_t bytes)
{
    (void)os_each_present(at, bytes, clear_pages);
}
