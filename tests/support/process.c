#include "process.h"

#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

size_t process_read(const char *path, char *text, size_t most)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, text, most - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

size_t process_rss_bytes(void)
{
    char text[2048];
    (void)process_read("/proc/self/smaps_rollup", text, sizeof text);
    const char *exact = strstr(text, "\nRss:");
    if (exact != NULL)
        return strtoul(exact + strlen("\nRss:"), NULL, 10) << 10;

    /* "total resident shared ...", in pages; since Linux 6.2 it is behind by up to 64 pages a processor. */
    CHECK(process_read("/proc/self/statm", text, sizeof text) > 0);
    char *end = NULL;
    (void)strtoul(text, &end, 10);
    const size_t resident_pages = strtoul(end, NULL, 10);
    return resident_pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Of the mapping there what smaps says under this name, with its colon. */
static const char *mapping_line(const void *at, const char *name)
{
    static char line[1 << 12];
    unsigned long first, end;
    bool inside = false, found = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    while (!found && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            inside = first <= (uintptr_t)at && (uintptr_t)at < end;
        else
            found = inside && strncmp(line, name, strlen(name)) == 0;
    }
    fclose(file);
    return found ? line + strlen(name) : "";
}

size_t process_mapped_bytes(void)
{
    char line[1 << 12];
    size_t bytes = 0;
    unsigned long first, end;
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        CHECK(sscanf(line, "%lx-%lx ", &first, &end) == 2);
        bytes += end - first;
    }
    fclose(file);
    return bytes;
}

bool process_mapping_has(const void *at, const char *flag)
{
    return strstr(mapping_line(at, "VmFlags:"), flag) != NULL;
}

size_t process_mapping_huge_kib(const void *at)
{
    return strtoul(mapping_line(at, "AnonHugePages:"), NULL, 10);
}

bool process_maps_file(const char *name)
{
    static char text[1 << 18];
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    size_t used = 0;
    for (;;) {
        const ssize_t length = read(fd, text + used, sizeof text - 1 - used);
        if (length <= 0) {
            break;
        }
        used += (size_t)length;
    }
    close(fd);
    text[used] = '\0';
    return strstr(text, name) != NULL;
}

bool process_is_emulated(void)
{
    return HAK_TEST_EMULATOR[0] != '\0';
}

extern char _dl_find_object __attribute__((weak));

bool process_finds_modules(void)
{
    return &_dl_find_object != NULL;
}

void process_become(const char *program, const char *argument)
{
    /* An emulator runs one program: the next needs one of its own. */
    enum { WORDS_MOST = 8 };
    static char emulator[] = HAK_TEST_EMULATOR;
    const char *words[WORDS_MOST + 3];
    size_t count = 0;
    for (char *word = strtok(emulator, " "); word != NULL; word = strtok(NULL, " ")) {
        CHECK(count < WORDS_MOST);
        words[count++] = word;
    }
    words[count++] = program;
    words[count++] = argument;
    words[count] = NULL;
    execvp(words[0], (char *const *)(uintptr_t)words);
}

void process_limit_files(size_t bytes)
{
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = bytes, .rlim_max = RLIM_INFINITY}) == 0);
}

uint64_t process_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
