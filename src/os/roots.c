#include "os/roots.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "base/fmt.h"
#include "base/kernel.h"
#include "os/lines.h"
#include "os/os.h"
#include "os/program.h"
#include "os/tasks.h"

/* Of more threads than these, stacks are looked at whole. */
enum { THREADS_MOST = 1024, PAGES_AT_ONCE = 512 };

/* A function may use so much below its stack pointer (the x86-64 ABI's red zone). */
enum { RED_ZONE = 128 };

struct threads {
    uintptr_t own; /* the caller's stack pointer */
    uintptr_t sp[THREADS_MOST];
    size_t count;
};

static struct threads threads;
static struct lines lines;

/* The stack pointer of a thread that waits in the kernel: the last but one word of its line ("running", if it does not). */
static uintptr_t waiting_at(const char *task)
{
    char path[64];
    const char *rest;
    fmt_print(path, sizeof path, "/proc/self/task/%s/syscall", task);
    if (!lines_open(&lines, path))
        return 0;
    const char *line = lines_next(&lines);
    lines_close(&lines);
    const char *last = line != NULL ? strrchr(line, ' ') : NULL;
    if (last == NULL)
        return 0;
    while (last > line && last[-1] != ' ')
        last--;
    return strncmp(last, "0x", 2) == 0 ? lines_hex(last + 2, &rest) : 0;
}

/* The caller's; 0 in a signal handler on a stack of its own: then what it has interrupted is in use too, perhaps in the same mapping. */
static uintptr_t own_at(void *own_stack)
{
    stack_t signals = {0};
    (void)kernel(SYS_sigaltstack, 0, (long)&signals, 0, 0, 0);
    return (signals.ss_flags & SS_ONSTACK) == 0 ? (uintptr_t)own_stack : 0;
}

static void note_thread(const char *task, void *own_stack)
{
    char own[16];
    fmt_print(own, sizeof own, "%d", os_thread_id());
    uintptr_t sp = strcmp(own, task) == 0 ? own_at(own_stack) : waiting_at(task);
    if (sp != 0 && threads.count < THREADS_MOST)
        threads.sp[threads.count++] = sp;
}

static void find_threads(uintptr_t own_stack)
{
    threads.own = own_stack;
    threads.count = 0;
    os_each_task(note_thread, (void *)own_stack);
}

/* Where what is in use of a mapping begins, if stacks lie in it. */
static uintptr_t first_in_use(uintptr_t start, uintptr_t end)
{
    uintptr_t first = end;
    for (size_t i = 0; i < threads.count; i++)
        if (threads.sp[i] >= start && threads.sp[i] < first)
            first = threads.sp[i];
    if (first == end)
        return start;
    return max_size(start, align_down(first - RED_ZONE, sizeof(uintptr_t)));
}

struct search {
    void (*look)(uintptr_t start, uintptr_t end, void *argument);
    void *argument;
    uintptr_t closed_end; /* of the mapping before, if nothing may touch that */
    int pages; /* what the kernel knows of each page; negative: it does not say */
};

/* In memory, or in swap space. (the kernel's admin-guide/mm/pagemap) */
static bool was_written(uint64_t page)
{
    return page >> 62 != 0;
}

static void look_at_pages(const struct search *search, uintptr_t start, uintptr_t end)
{
    static uint64_t known[PAGES_AT_ONCE];
    size_t page = os_page_size();
    while (start < end) {
        size_t first = start / page;
        size_t count = min_size(divide_up(end - align_down(start, page), page), PAGES_AT_ONCE);
        long got = search->pages < 0 ? -1
                                     : kernel(SYS_pread64, search->pages, (long)known, (long)(count * sizeof known[0]),
                                              (long)(first * sizeof known[0]), 0);
        if (got != (long)(count * sizeof known[0])) {
            search->look(start, end, search->argument);
            return;
        }
        for (size_t i = 0; i < count; i++) {
            size_t from = i;
            while (i < count && was_written(known[i]))
                i++;
            if (i > from)
                search->look(max_size(start, (first + from) * page), min_size(end, (first + i) * page), search->argument);
        }
        start = (first + count) * page;
    }
}

static bool is_main_stack(const char *line)
{
    const char *name = strrchr(line, ' ');
    return name != NULL && strcmp(name, " [stack]") == 0;
}

/* Is the mapping one stack of a thread? The kernel makes one of mappings that lie side by side, so a stack made by the program may have
 * others below it, or data: those that libc makes have a guard there, and the thread's record at their end. */
static bool is_stack(const struct search *search, uintptr_t start, uintptr_t end)
{
    bool is_own = threads.own >= start && threads.own < end;
    uintptr_t record = (uintptr_t)pthread_self();
    return search->closed_end == start && (!is_own || (record > threads.own && record < end));
}

/* How far down the stack has been in use before: pages were written as it grew, one after the other. What lies below pages that
 * never were is something else, which the program has put there. */
static uintptr_t lowest_of_stack(const struct search *search, uintptr_t start, uintptr_t in_use)
{
    size_t page = os_page_size();
    uintptr_t lowest = align_down(in_use, page);
    uint64_t known;
    while (lowest > start
           && kernel(SYS_pread64, search->pages, (long)&known, sizeof known, (long)((lowest / page - 1) * sizeof known), 0)
                  == (long)sizeof known
           && was_written(known))
        lowest -= page;
    return max_size(lowest, start);
}

/* Of a stack nothing is in use below its stack pointer. */
static void look_at_writable(const struct search *search, uintptr_t start, uintptr_t end, bool is_main)
{
    uintptr_t in_use = is_main || is_stack(search, start, end) ? first_in_use(start, end) : start;
    if (!is_main && in_use > start)
        look_at_pages(search, start, lowest_of_stack(search, start, in_use));
    look_at_pages(search, in_use, end);
}

/* "START-END rwxp …" */
static void look_at_mapping(struct search *search, const char *line)
{
    const char *rest;
    uintptr_t start = lines_hex(line, &rest);
    if (*rest != '-')
        return;
    uintptr_t end = lines_hex(rest + 1, &rest);
    if (strncmp(rest, " rw", 3) == 0 && rest[4] == 'p')
        look_at_writable(search, start, end, is_main_stack(line));
    search->closed_end = strncmp(rest, " ---", 4) == 0 ? end : 0;
}

bool os_each_root(uintptr_t own_stack, void (*look)(uintptr_t start, uintptr_t end, void *argument), void *argument)
{
    find_threads(own_stack);
    if (!lines_open(&lines, os_own_file(OS_OWN_MAPS)))
        return false;
    struct search search = {.look = look, .argument = argument, .pages = file_open(os_own_file(OS_OWN_PAGES))};
    bool any = false;
    for (const char *line; (line = lines_next(&lines)) != NULL; any = true)
        look_at_mapping(&search, line);
    lines_close(&lines);
    if (search.pages >= 0)
        file_close(search.pages);
    return any;
}

void os_each_written(uintptr_t start, uintptr_t end, void (*look)(uintptr_t start, uintptr_t end, void *argument), void *argument)
{
    const struct search search = {.look = look, .argument = argument, .pages = file_open(os_own_file(OS_OWN_PAGES))};
    look_at_pages(&search, start, end);
    if (search.pages >= 0)
        file_close(search.pages);
}
