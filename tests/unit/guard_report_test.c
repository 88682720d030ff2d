/* check/guard_report.h: what is said when guarded blocks are misused, and that nothing else is said. */
#include "unit.h"

#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "guards.h"
#include "process.h"

static char *volatile kept;

static void read_after_free(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded(24);
    hak_free(kept);
    volatile char byte = kept[5];
    (void)byte;
}

static void write_after_free(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded(24);
    hak_free(kept);
    kept[23] = 1;
}

static void write_beyond(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded_at(32, false);
    kept[32] = 1;
}

/* Where no block has been yet. */
static void read_far_beyond(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded(32);
    volatile char byte = kept[2 * os_page_size()];
    (void)byte;
}

static void read_before(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded_at(32, true);
    volatile char byte = kept[-3];
    (void)byte;
}

static void close_page(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded_at(32, true);
    CHECK(mprotect(kept, 32, PROT_NONE) == 0);
    volatile char byte = kept[5];
    (void)byte;
}

static volatile sig_atomic_t touches;

/* A write barrier, as collectors have. The second touch is none. */
static void open_page(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    if (touches++ == 0)
        CHECK(mprotect(kept, 32, PROT_READ | PROT_WRITE) == 0);
    else
        CHECK(signal(number, SIG_DFL) != SIG_ERR);
}

static void touch_barrier_then_freed(uintptr_t unused)
{
    const struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    close_page(unused);
    CHECK(touches == 1);
    hak_free(kept);
    volatile char byte = kept[5];
    (void)byte;
}

static void jump_into(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded_at(32, true);
    void (*function)(void);
    memcpy(&function, &(char *){kept + 16}, sizeof function);
    function();
}

static void write_into_slack(uintptr_t at_start)
{
    guard_each(1);
    kept = guarded_at(30, at_start != 0);
    kept[31] = 1;
    hak_free(kept);
}

static void free_twice(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded(24);
    hak_free(kept);
    hak_free(kept);
}

static void free_as_larger(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    hak_free_sized(guarded(24), 24);
    hak_free_sized(guarded(24), 25);
}

static void free_inside(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded(64);
    hak_free(kept + 16);
}

static void resize_after_free(uintptr_t unused)
{
    (void)unused;
    guard_each(1);
    kept = guarded(24);
    hak_free(kept);
    kept = hak_realloc(kept, 100);
}

#define HEADER(kind, how) "^==[0-9]+==ERROR: hakmem: " kind " on address 0x[0-9a-f]+ \\((" how "), thread [0-9]+\\)$"
#define PLACE(distance, where, size) \
    "^0x[0-9a-f]+ is located " distance " bytes " where " " size "-byte region \\[0x[0-9a-f]+,0x[0-9a-f]+\\)$"
#define FREED "^freed by thread [0-9]+ here:$"
#define ALLOCATED_BEFORE "^previously allocated by thread [0-9]+ here:$"
#define ALLOCATED "^allocated by thread [0-9]+ here:$"
#define CALL "^    #0 0x[0-9a-f]+"

/* The emulator does not say whether it was a read or a write. */
#define READ "READ|access"
#define WRITE "WRITE|access"

static void expect_report(void (*action)(uintptr_t), uintptr_t value, int number, const char *const *lines)
{
    struct child child = child_run(action, value);
    if (!WIFSIGNALED(child.status) || WTERMSIG(child.status) != number)
        fprintf(stderr, "status 0x%x\n%s", (unsigned)child.status, child.output);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == number);
    for (; *lines != NULL; lines++) {
        regex_t regex;
        CHECK(regcomp(&regex, *lines, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) == 0);
        if (regexec(&regex, child.output, 0, NULL, 0) != 0) {
            fprintf(stderr, "wanted: %s\nfound:\n%s", *lines, child.output);
            abort();
        }
        regfree(&regex);
    }
}

#define EXPECT_REPORT(action, value, number, ...) \
    expect_report((action), (value), (number), (const char *const[]){__VA_ARGS__, CALL, NULL})

static void faults_are_reported(void)
{
    EXPECT_REPORT(read_after_free, 0, SIGSEGV, HEADER("heap-use-after-free", READ), PLACE("5", "inside of", "24"), FREED,
                  ALLOCATED_BEFORE);
    EXPECT_REPORT(write_after_free, 0, SIGSEGV, HEADER("heap-use-after-free", WRITE), PLACE("23", "inside of", "24"), FREED);
    EXPECT_REPORT(write_beyond, 0, SIGSEGV, HEADER("heap-buffer-overflow", WRITE), PLACE("0", "after", "32"), ALLOCATED);
    EXPECT_REPORT(read_far_beyond, 0, SIGSEGV, HEADER("heap-buffer-overflow", READ), PLACE("[0-9]+", "after", "32"), ALLOCATED);
    EXPECT_REPORT(read_before, 0, SIGSEGV, HEADER("heap-buffer-underflow", READ), PLACE("3", "before", "32"), ALLOCATED);
    EXPECT_REPORT(close_page, 0, SIGSEGV, HEADER("closed-page", READ), PLACE("5", "inside of", "32"), ALLOCATED);
    if (!process_is_emulated()) /* the emulator does not say that it was a jump */
        EXPECT_REPORT(jump_into, 0, SIGSEGV, HEADER("wild-jump", "EXECUTE"), PLACE("16", "inside of", "32"), ALLOCATED);
}

/* A page that the program closes, to be told of the touch, is its own affair. */
static void barriers_are_not(void)
{
    EXPECT_REPORT(touch_barrier_then_freed, 0, SIGSEGV, HEADER("heap-use-after-free", READ), FREED);
    struct child child = child_run(touch_barrier_then_freed, 0);
    CHECK(strstr(child.output, "closed-page") == NULL);
}

static void bad_frees_are_reported(void)
{
    for (uintptr_t at_start = 0; at_start < 2; at_start++)
        EXPECT_REPORT(write_into_slack, at_start, SIGABRT, HEADER("heap-buffer-overflow, found by free,", "free or realloc"),
                      PLACE("1", "after", "30"), ALLOCATED);
    EXPECT_REPORT(free_twice, 0, SIGABRT, HEADER("double-free", "free or realloc"), PLACE("0", "inside of", "24"), FREED,
                  ALLOCATED_BEFORE);
    EXPECT_REPORT(free_inside, 0, SIGABRT, HEADER("invalid-free", "free or realloc"), PLACE("16", "inside of", "64"),
                  ALLOCATED);
    EXPECT_REPORT(free_as_larger, 0, SIGABRT, HEADER("new-delete-type-mismatch", "free or realloc"), ALLOCATED);
    EXPECT_REPORT(resize_after_free, 0, SIGABRT, HEADER("heap-use-after-free", "free or realloc"), FREED);
}

static void end_well(int number)
{
    _exit(number == SIGSEGV ? 0 : 1);
}

static void fault_with_handler(uintptr_t when)
{
    if (when == 0)
        (void)signal(SIGSEGV, end_well);
    guard_each(1);
    kept = guarded(24);
    if (when == 1)
        (void)signal(SIGSEGV, end_well);
    hak_free(kept);
    kept[0] = 1;
}

/* From before the first sample: it is called after the report. From after it: it stands in the place of the report. */
static void programs_handlers_are_called(void)
{
    struct child child = child_run(fault_with_handler, 0);
    CHECK(child.status == 0 && strstr(child.output, "heap-use-after-free") != NULL);
    child = child_run(fault_with_handler, 1);
    CHECK(child.status == 0 && child.output[0] == '\0');
}

static void fault_elsewhere(uintptr_t sent)
{
    guard_each(1);
    hak_free(guarded(24));
    volatile uintptr_t nowhere = 8;
    if (sent != 0)
        (void)raise(SIGSEGV);
    else
        *(volatile char *)nowhere = 1;
}

static void other_faults_are_left_alone(void)
{
    for (uintptr_t sent = 0; sent < 2; sent++) {
        struct child child = child_run(fault_elsewhere, sent);
        CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGSEGV && child.output[0] == '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(faults_are_reported),
        UNIT_TEST(barriers_are_not),
        UNIT_TEST(bad_frees_are_reported),
        UNIT_TEST(programs_handlers_are_called),
        UNIT_TEST(other_faults_are_left_alone),
    };
    return cmocka_run_group_tests_name("guard_report", tests, NULL, NULL);
}
