/* What is in memory, page by page. */
#include <string.h>

#include "os/kernel.h"
#include "os/os.h"

enum { LOOK_PAGES = 512 };

/* So much is looked at at once, however large pages are: emulators count their host's, and fill in more. */
#define LOOK_BYTES (LOOK_PAGES * 4 * KIB)

/* Of each page from `at` on, bit 0 says whether it is in memory. False: the kernel does not say. */
static bool look(const void *at, size_t bytes, unsigned char in_memory[LOOK_PAGES])
{
    return !is_error(kernel(SYS_mincore, (long)at, (long)bytes, (long)in_memory, 0, 0));
}

size_t os_resident(const void *at, size_t bytes)
{
    unsigned char in_memory[LOOK_PAGES];
    size_t page = os_page_size();
    size_t resident = 0;
    for (size_t done = 0, here; done < bytes; done += here) {
        here = min_size(bytes - done, LOOK_BYTES);
        if (!look((const char *)at + done, here, in_memory))
            break;
        for (size_t i = 0; i < here / page; i++)
            resident += (in_memory[i] & 1) != 0 ? page : 0;
    }
    return resident;
}

/* Pages that are not in memory may be in swap: what is there is given back. So all of them read as zero afterwards, whatever
 * the kernel has said of them. */
static void clear_run(char *at, size_t bytes, bool in_memory)
{
    if (in_memory || !os_purge(at, bytes))
        memset(at, 0, bytes);
}

static void clear_pages(char *at, size_t pages, const unsigned char *in_memory)
{
    size_t page = os_page_size();
    for (size_t from = 0, to; from < pages; from = to) {
        for (to = from + 1; to < pages && ((in_memory[from] ^ in_memory[to]) & 1) == 0;)
            to++;
        clear_run(at + from * page, (to - from) * page, (in_memory[from] & 1) != 0);
    }
}

void os_clear(void *at, size_t bytes)
{
    unsigned char in_memory[LOOK_PAGES];
    for (size_t done = 0, here; done < bytes; done += here) {
        here = min_size(bytes - done, LOOK_BYTES);
        if (look((char *)at + done, here, in_memory))
            clear_pages((char *)at + done, here / os_page_size(), in_memory);
        else
            memset((char *)at + done, 0, here);
    }
}
