/*
 * Limits that a running process meets: address space, data, mappings, locked memory, a foreign mapping wherever
 * the range would grow. A request gets NULL and ENOMEM, live blocks keep their content, threads start as long as
 * there is room for their stacks, and when the limit is lifted the next request is served.
 */
#include "check.h"
#include "child.h"
#include "family.h"
#include "load.h"
#include "process.h"
#include "scale.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static struct load load;

static size_t mapped_bytes(void)
{
    char text[64] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fgets(text, sizeof text, file) != NULL);
    fclose(file);
    return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, size_t bytes)
{
    struct rlimit now;
    CHECK(getrlimit(resource, &now) == 0);
    now.rlim_cur = bytes == 0 ? now.rlim_max : bytes;
    CHECK(setrlimit(resource, &now) == 0);
}

static void *allocating_thread(void *argument)
{
    struct load *own = argument;
    own->random = 7;
    load_run(own, 3000, 8 * MIB);
    load_check(own);
    load_drain(own);
    return NULL;
}

static void run_thread(void)
{
    static struct load in_thread;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocating_thread, &in_thread) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* All is well again: nothing is refused, and nothing that was freed stays. */
static void works_again(void)
{
    load_check(&load);
    load_drain(&load);
    load.refused = 0;
    load_run(&load, scaled_work(30000), 64 * MIB);
    CHECK(load.refused == 0);
    load_drain(&load);
    void *huge = family.malloc(300 * MIB);
    CHECK(huge != NULL);
    family.free(huge);
    run_thread();
}

/* `mib` of address space in all, set while running. */
static void address_space(uintptr_t mib)
{
    load_run(&load, 5000, 4 * MIB);
    limit(RLIMIT_AS, mib * MIB);
    run_thread();
    static const size_t sizes[] = {100, 3000, 40000, 500000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        load_drain(&load);
        (void)load_fill(&load, sizes[i], 2048 * MIB);
        CHECK(load.live_bytes < mib * MIB);
        load_check(&load);
        load_run(&load, 5000, mib * MIB);
    }
    CHECK(family.malloc(mib * MIB) == NULL && errno == ENOMEM);
    load_drain(&load);
    CHECK(load.refused > 0);
    limit(RLIMIT_AS, 0);
    works_again();
}

/* A limit below what is mapped already: nothing new, but what is there serves. */
static void address_space_below_use(uintptr_t unused)
{
    (void)unused;
    load_run(&load, 5000, 16 * MIB);
    limit(RLIMIT_AS, MIB);
    CHECK(family.malloc(64 * MIB) == NULL && errno == ENOMEM);
    load_run(&load, 20000, 16 * MIB);
    load_check(&load);
    CHECK(family.malloc_trim(0) >= 0);
    load_run(&load, 20000, 16 * MIB);
    limit(RLIMIT_AS, 0);
    works_again();
}

static void data(uintptr_t mib)
{
    load_run(&load, 5000, 4 * MIB);
    limit(RLIMIT_DATA, mib * MIB);
    run_thread();
    CHECK(load_fill(&load, 20000, 2048 * MIB));
    load_check(&load);
    load_run(&load, 20000, mib * MIB);
    limit(RLIMIT_DATA, 0);
    works_again();
}

/* Until the kernel allows no further mapping: pages of other protection in a field of inaccessible ones. */
static char *use_up_mappings(size_t *pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t most = 4u << 20;
    char *field = mmap(NULL, most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(field != MAP_FAILED);
    for (size_t i = 1; i < most; i += 2) {
        if (mprotect(field + i * page, page, PROT_READ) != 0) {
            CHECK(errno == ENOMEM);
            *pages = most;
            return field;
        }
    }
    CHECK(!"the system limits the number of mappings");
    return NULL;
}

static void mappings(uintptr_t unused)
{
    (void)unused;
    load_run(&load, 20000, 32 * MIB);
    size_t pages = 0;
    char *field = use_up_mappings(&pages);
    load_run(&load, scaled_work(100000), 64 * MIB);
    load_check(&load);
    (void)load_fill(&load, 700000, 256 * MIB);
    load_check(&load);
    CHECK(family.malloc_trim(0) >= 0);
    load_run(&load, 20000, 64 * MIB);
    CHECK(munmap(field, pages * (size_t)sysconf(_SC_PAGESIZE)) == 0);
    works_again();
}

/* realloc cannot move pages then, and copies; what the attempt took comes back. */
static void mappings_and_growth(uintptr_t unused)
{
    (void)unused;
    family.free(family.malloc(64 * MIB));
    size_t pages = 0;
    char *field = use_up_mappings(&pages);
    size_t before = 0;
    for (size_t round = 0; round < 200; round++) {
        unsigned char *block = family.malloc(400000);
        CHECK(block != NULL);
        memset(block, (int)round, 400000);
        unsigned char *in_the_way = family.malloc(70000);
        unsigned char *grown = family.realloc(block, 4 * MIB);
        CHECK(in_the_way != NULL && grown != NULL);
        CHECK(grown[0] == (unsigned char)round && grown[399999] == (unsigned char)round);
        memset(grown, (int)round, 4 * MIB);
        family.free(grown);
        family.free(in_the_way);
        if (round == 20) {
            before = mapped_bytes();
        }
    }
    const size_t after = mapped_bytes();
    CHECK(after < before + 64 * MIB);
    CHECK(process_rss_bytes() < scaled_rss(256 * MIB));
    CHECK(munmap(field, pages * (size_t)sysconf(_SC_PAGESIZE)) == 0);
    works_again();
}

/* Locked memory: purges are refused, and an ordinary user's limit refuses new mappings. */
static void locked(uintptr_t ordinary_user)
{
    if (ordinary_user != 0 && geteuid() == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    }
    load_run(&load, 20000, 16 * MIB);
    if (ordinary_user != 0) {
        limit(RLIMIT_MEMLOCK, 4 * MIB);
        CHECK(mlockall(MCL_FUTURE) == 0);
    } else if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        CHECK(errno == ENOMEM || errno == EPERM);
    }
    load_run(&load, 20000, 32 * MIB);
    CHECK(family.malloc_trim(0) >= 0);
    load_run(&load, 20000, 32 * MIB);
    load_check(&load);
    if (ordinary_user != 0) {
        CHECK(load_fill(&load, 500000, 256 * MIB));
        load_check(&load);
    }
    CHECK(munlockall() == 0);
    works_again();
}

/* Takes all address space in pieces as large as can be had, and remembers them. */
enum { PIECES = 4096 };
static struct piece {
    void *at;
    size_t bytes;
} pieces[PIECES];

static size_t take_all_address_space(size_t least)
{
    size_t count = 0;
    for (size_t bytes = (size_t)1 << 46; bytes >= least; bytes /= 2) {
        for (;;) {
            void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (at == MAP_FAILED) {
                break;
            }
            CHECK(count < PIECES);
            pieces[count++] = (struct piece){at, bytes};
        }
    }
    return count;
}

static void no_address_space(uintptr_t unused)
{
    (void)unused;
    load_run(&load, 20000, 16 * MIB);
    const size_t count = take_all_address_space(65536);
    (void)load_fill(&load, 500000, 1024 * MIB);
    CHECK(load.live_bytes < 1024 * MIB);
    CHECK(load.refused > 0);
    load_check(&load);
    load_run(&load, 20000, 16 * MIB);
    CHECK(family.malloc(300 * MIB) == NULL && errno == ENOMEM);
    for (size_t i = 0; i < count; i++) {
        CHECK(munmap(pieces[i].at, pieces[i].bytes) == 0);
    }
    works_again();
}

/* Something foreign right behind the range, again and again: it is stepped over, and nothing of it is touched. */
static void foreign_neighbours(uintptr_t unused)
{
    (void)unused;
    enum { NEIGHBOURS = 40 };
    static unsigned char *neighbours[NEIGHBOURS];
    const size_t bytes = 3 * MIB;
    unsigned char *low = family.malloc(100000);
    CHECK(low != NULL);
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        /* In the next free place above the newest block. */
        for (unsigned char *at = (unsigned char *)((uintptr_t)low & ~(MIB - 1)) + MIB;; at += MIB) {
            void *got = mmap(at, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
            if (got != MAP_FAILED) {
                neighbours[i] = got;
                break;
            }
        }
        memset(neighbours[i], (int)i, bytes);
        void *grown = family.malloc(20 * MIB);
        CHECK(grown != NULL);
        memset(grown, 0xee, 20 * MIB);
        load_run(&load, 2000, 64 * MIB);
    }
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        for (size_t at = 0; at < bytes; at += 4096) {
            CHECK(neighbours[i][at] == (unsigned char)i);
        }
        CHECK(munmap(neighbours[i], bytes) == 0);
    }
    works_again();
}

static void run(const char *name, void (*action)(uintptr_t value), uintptr_t value)
{
    printf("limits: %s %zu\n", name, (size_t)value);
    fflush(stdout);
    const struct child child = child_run(action, value);
    if (child.status != 0 || child.output[0] != '\0') {
        fprintf(stderr, "limits: %s ended with status 0x%x\n%s", name, (unsigned)child.status, child.output);
    }
    CHECK(child.status == 0 && child.output[0] == '\0');
}

int main(void)
{
    family_require_hakmem();
    static const size_t mib[] = {512, 128, 64, 48};
    for (size_t i = 0; i < sizeof mib / sizeof mib[0]; i++) {
        run("address space, MiB:", address_space, mib[i]);
    }
    run("address space below use", address_space_below_use, 0);
    run("data, MiB:", data, 128);
    run("data, MiB:", data, 32);
    run("mappings", mappings, 0);
    run("mappings and growth", mappings_and_growth, 0);
    run("mlockall", locked, 0);
    run("mlockall, ordinary user", locked, 1);
    run("no address space", no_address_space, 0);
    run("foreign neighbours", foreign_neighbours, 0);
    printf("limits: ok\n");
    return 0;
}
