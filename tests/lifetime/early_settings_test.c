/*
 * What the program sets before the library's constructor runs stays, whatever the environment says; what it has started is
 * not started again. EARLY in the environment says what else it does by then: it starts check mode, or only takes so much memory that
 * the limit of the control group is looked up.
 */
#include "check.h"
#include "child.h"
#include "family.h"
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define EARLY "HAK_TEST_EARLY"

extern int hak_set_limit(size_t soft, size_t hard) __attribute__((weak));
extern int hak_mode_set(const char *name) __attribute__((weak));
extern int hak_profile_start(size_t bytes) __attribute__((weak));
extern int hak_check_start(void) __attribute__((weak));
extern int hak_stats_write(const char *path) __attribute__((weak));

static void set_all(void)
{
    CHECK(hak_set_limit(64 * MIB, 100 * MIB) == 0);
    CHECK(hak_mode_set("minimal") == 0);
    CHECK(hak_profile_start(4096) == 0);
}

static void take_memory(void)
{
    for (int i = 0; i < 20; i++)
        CHECK(family.malloc(2 * MIB) != NULL);
}

/* Before libc's own constructor, too: getenv knows nothing yet. */
static void preinit(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    while (*environment != NULL && strncmp(*environment, EARLY "=", sizeof EARLY) != 0)
        environment++;
    if (*environment == NULL)
        set_all();
    else if (strcmp(*environment, EARLY "=checks") == 0)
        CHECK(hak_check_start() == 0);
    else
        take_memory();
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = preinit;

static void check_limits(void)
{
    CHECK(family.malloc(200 * MIB) == NULL);
    void *block = family.malloc(50 * MIB);
    CHECK(block != NULL);
    family.free(block);
}

static void request_much(void)
{
    for (int i = 0; i < 20000; i++)
        family.free(family.malloc(1000));
}

static void check_statistics(void)
{
    static char text[1 << 18];
    char path[] = "/tmp/hakmem-early-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && hak_stats_write(path) == 0);
    close(file);
    file = open(path, O_RDONLY | O_CLOEXEC); /* the statistics have replaced it */
    ssize_t length = read(file, text, sizeof text - 1);
    CHECK(length > 0);
    close(file);
    unlink(path);
    CHECK(strstr(text, "\"soft_limit_bytes\":67108864,\"hard_limit_bytes\":104857600") != NULL);
    CHECK(strstr(text, "\"mode\":\"minimal\"") != NULL);
    CHECK(strstr(text, "\"rate_bytes\":4096,") != NULL && strstr(text, "\"samples\":0,") == NULL);
}

static void abort_with_checks(uintptr_t program)
{
    CHECK(setenv(EARLY, "checks", 1) == 0);
    process_become((const char *)program, "abort");
}

static void be_limited(uintptr_t program)
{
    CHECK(setenv(EARLY, "memory", 1) == 0 && setenv("HAKMEM_LIMIT", "64M:100M", 1) == 0);
    process_become((const char *)program, "limited");
}

int main(int argc, char **argv)
{
    family_require_hakmem();
    if (argc > 1 && strcmp(argv[1], "abort") == 0)
        abort();
    check_limits();
    if (argc > 1)
        return 0;
    request_much();
    check_statistics();
    CHECK(child_dies_of(SIGABRT, abort_with_checks, (uintptr_t)argv[0], ""));
    CHECK(child_run(be_limited, (uintptr_t)argv[0]).status == 0);
}
