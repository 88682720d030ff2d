#include "cases.h"

#include "check.h"
#include "family.h"
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static size_t mapped_bytes(const char *field)
{
    char line[200];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            CHECK(sscanf(line + strlen(field), ": %zu", &kib) == 1);
    fclose(file);
    CHECK(kib != 0);
    return kib * 1024;
}

static struct rlimit lower(__rlimit_resource_t resource, size_t bytes)
{
    struct rlimit before;
    CHECK(getrlimit(resource, &before) == 0);
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = before.rlim_max};
    CHECK(setrlimit(resource, &limit) == 0);
    return before;
}

/* Blocks until there is no more; they are kept in a list that lies in themselves. */
static void *exhaust(size_t size)
{
    void *list = NULL;
    for (;;) {
        errno = 0;
        void **block = family.malloc(size);
        if (block == NULL) {
            CHECK(errno == ENOMEM);
            return list;
        }
        memset(block, 0x5a, size);
        *block = list;
        list = block;
    }
}

static void release(void *list)
{
    while (list != NULL) {
        void *next = *(void **)list;
        family.free(list);
        list = next;
    }
}

/* To the end with small blocks and with large ones, then with a mixture; afterwards all is well again. */
static void live_under(struct rlimit *before, __rlimit_resource_t resource)
{
    static const size_t sizes[] = {24, 600, 20000, 70000, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *list = exhaust(sizes[i]);
        CHECK(list != NULL);
        /* What was given back is had again. */
        void *next = *(void **)list;
        family.free(list);
        void **again = family.malloc(sizes[i]);
        CHECK(again != NULL);
        *again = next;
        release(again);
    }
    (void)workload_try();
    CHECK(setrlimit(resource, before) == 0);
    workload_check_held();
    workload_run();
}

static void address_space(uintptr_t mib)
{
    workload_hold();
    struct rlimit before = lower(RLIMIT_AS, mapped_bytes("VmSize") + mib * MIB);
    live_under(&before, RLIMIT_AS);
}

static void data_segment(uintptr_t mib)
{
    workload_hold();
    struct rlimit before = lower(RLIMIT_DATA, mapped_bytes("VmData") + mib * MIB);
    live_under(&before, RLIMIT_DATA);
}

static void address_space_from_the_start(uintptr_t mib)
{
    struct rlimit limit = {mib * MIB, mib * MIB};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    hostile_become_workload();
}

static void *nothing(void *argument)
{
    family.free(family.malloc(100));
    return argument;
}

/* The allocator must not have taken what threads need. */
static void threads_still_start(uintptr_t mib)
{
    workload_hold();
    (void)lower(RLIMIT_AS, mib * MIB);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    workload_check_held();
}

/* Every other page of a mapping with another protection is a mapping of its own. */
static void mappings(uintptr_t unused)
{
    (void)unused;
    workload_hold();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = 140000 * page;
    char *many = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(many != MAP_FAILED);
    size_t at = 0;
    while (at < bytes && mprotect(many + at, page, PROT_READ) == 0)
        at += 2 * page;
    CHECK(at < bytes); /* vm.max_map_count is reached */
    (void)workload_try();
    void *list = exhaust(200000);
    release(list);
    CHECK(munmap(many, bytes) == 0);
    workload_check_held();
    workload_run();
}

/* PROT_NONE from the largest piece that there is down to one page. */
static void whole_address_space(uintptr_t unused)
{
    (void)unused;
    enum { PIECES = 4000 };
    static struct {
        void *at;
        size_t bytes;
    } pieces[PIECES];
    workload_hold();
    size_t count = 0;
    for (size_t bytes = (size_t)1 << 46; bytes >= (size_t)sysconf(_SC_PAGESIZE);) {
        void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) {
            bytes /= 2;
            continue;
        }
        CHECK(count < PIECES);
        pieces[count].at = at;
        pieces[count++].bytes = bytes;
    }
    (void)workload_try();
    for (size_t i = 0; i < count; i++)
        CHECK(munmap(pieces[i].at, pieces[i].bytes) == 0);
    workload_check_held();
    workload_run();
}

static void locked_memory(uintptr_t unused)
{
    (void)unused;
    workload_hold();
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    workload_run();
    workload_check_held();
    CHECK(munlockall() == 0);
    workload_run();
}

/* With a limit on it, as an ordinary user: every new mapping is refused soon. */
static void locked_memory_of_a_user(uintptr_t mib)
{
    workload_hold();
    (void)lower(RLIMIT_MEMLOCK, mib * MIB);
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    CHECK(mlockall(MCL_FUTURE) == 0);
    (void)workload_try();
    release(exhaust(100000));
    CHECK(munlockall() == 0);
    workload_check_held();
    workload_run();
}

const struct hostile_case limit_cases[] = {
    {"RLIMIT_AS, 8 MiB more", address_space, 8},
    {"RLIMIT_AS, 60 MiB more", address_space, 60},
    {"RLIMIT_AS, 300 MiB more", address_space, 300},
    {"RLIMIT_DATA, 8 MiB more", data_segment, 8},
    {"RLIMIT_DATA, 100 MiB more", data_segment, 100},
    {"RLIMIT_AS 512 MiB from the start", address_space_from_the_start, 512},
    {"RLIMIT_AS 256 MiB from the start", address_space_from_the_start, 256},
    {"threads under RLIMIT_AS 512 MiB", threads_still_start, 512},
    {"vm.max_map_count reached", mappings, 0},
    {"address space full", whole_address_space, 0},
    {"mlockall", locked_memory, 0},
    {"mlockall with RLIMIT_MEMLOCK 4 MiB", locked_memory_of_a_user, 4},
};
const size_t limit_case_count = sizeof limit_cases / sizeof limit_cases[0];
