/*
 * Crash reports: HAKMEM_CRASH=1, and a program that dies in each way. This program runs itself again, since the environment
 * is read once.
 */
#include "child.h"
#include "family.h"
#include "process.h"

/* cmocka.h needs some of these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL "^    #[0-9]+ 0x[0-9a-f]+( \\([^ ]+\\+0x[0-9a-f]+\\))?$"
#define HEAP "^hakmem: crash: the heap: bytes in small blocks, .*$"

enum { ALTERNATE_BYTES = 1 << 18 };

static const char *crash_program; /* argv[0] */
static const char *option;        /* HAKMEM_CRASH=… for the next child */
static char *volatile kept;

/* ---- Ways to die, each called by die(), which main calls. */

static void double_free(void)
{
    kept = family.malloc(64);
    family.free(kept);
    family.free(kept);
}

static void wild_write(void)
{
    volatile uintptr_t nowhere = 8;
    *(volatile int *)nowhere = 1;
}

/* Into a page of a block that the program itself has closed. */
static void write_into_block(void)
{
    kept = family.malloc(1 << 20);
    uintptr_t page = ((uintptr_t)kept + 300000) & ~(uintptr_t)0xffff;
    if (mprotect((void *)page, 1 << 16, PROT_NONE) == 0)
        *(volatile char *)(page + 5) = 1;
}

/* In check mode, where the register that holds the number is one of those that a stray pointer may have been in. */
static void null_beside_what_is_uninitialised(void)
{
    volatile uintptr_t *words = family.malloc(sizeof *words * 8);
    uintptr_t nowhere = 8;
    uintptr_t word = words[3];
    __asm__ volatile("" : "+r"(word), "+r"(nowhere));
    *(volatile int *)nowhere = 1;
    __asm__ volatile("" : : "r"(word));
    kept = (void *)words;
}

static void aborting(void)
{
    abort();
}

static void raising(void)
{
    (void)raise(SIGSEGV);
}

static void raising_abort(void)
{
    (void)raise(SIGABRT);
}

static void say_and_end(int number)
{
    static const char text[] = "the program's own\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    _exit(written > 0 && number == SIGSEGV ? 7 : 8);
}

static void with_handler(void)
{
    (void)signal(SIGSEGV, say_and_end);
    wild_write();
}

static void *in_thread(void *unused)
{
    double_free();
    return unused;
}

static void threading(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) == 0)
        (void)pthread_join(thread, NULL);
}

/* A page of a file that ends before it. */
static void beyond_a_file(void)
{
    int file = memfd_create("empty", 0);
    volatile char *page = mmap(NULL, 1, PROT_WRITE, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        *page = 1;
}

static __attribute__((noinline)) int recurse(volatile int *above)
{
    volatile int here[64];
    here[0] = *above + 1;
    return here[0] > 0 ? recurse(here) + here[0] : 0; /* as far as the compiler knows it ends */
}

/* The report has to be written from the stack that the program keeps for signals. */
static void *overflow_stack(void *stack)
{
    const stack_t alternate = {.ss_sp = stack, .ss_size = ALTERNATE_BYTES};
    volatile int depth = 0;
    if (sigaltstack(&alternate, NULL) == 0)
        depth = recurse(&depth);
    return NULL;
}

static void overflowing_stack(void)
{
    static char stack[ALTERNATE_BYTES];
    pthread_t thread;
    if (pthread_create(&thread, NULL, overflow_stack, stack) == 0)
        (void)pthread_join(thread, NULL);
}

static const struct way {
    const char *name;
    void (*die)(void);
    int signal;
    const char *first_line;
    unsigned own_calls; /* of this program, at least */
} ways[] = {
    {"--double-free", double_free, SIGABRT, "^hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)$", 3},
    {"--wild-write", wild_write, SIGSEGV, "^hakmem: crash: SIGSEGV at 0x8, thread [0-9]+: the address is not in the heap$", 3},
    {"--null", null_beside_what_is_uninitialised, SIGSEGV,
     "^hakmem: crash: SIGSEGV at 0x8, thread [0-9]+: the address is not in the heap$", 3},
    {"--write-into-block", write_into_block, SIGSEGV,
     "^hakmem: crash: SIGSEGV at 0x[0-9a-f]+5, thread [0-9]+: the address is [0-9]+ bytes into a live block of 1048576 B at "
     "0x[0-9a-f]+$", 3},
    {"--bus", beyond_a_file, SIGBUS, "^hakmem: crash: SIGBUS at 0x[0-9a-f]+, thread [0-9]+: the address is not in the heap$", 3},
    {"--stack", overflowing_stack, SIGSEGV,
     "^hakmem: crash: SIGSEGV at 0x[0-9a-f]+, thread [0-9]+: the address is not in the heap$", 3},
    {"--abort", aborting, SIGABRT, "^hakmem: crash: SIGABRT, thread [0-9]+$", 2},
    {"--raise", raising, SIGSEGV, "^hakmem: crash: SIGSEGV, thread [0-9]+$", 2},
    {"--raise-abort", raising_abort, SIGABRT, "^hakmem: crash: SIGABRT, thread [0-9]+$", 2},
    {"--thread", threading, SIGABRT, "^hakmem: fatal: double free of .*$", 1},
    {"--handler", with_handler, 0, "^the program's own$", 0},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

static __attribute__((noinline)) void die(const struct way *way)
{
    way->die();
    kept = NULL; /* a call that is not the last thing keeps its frame */
}

static void run_way(uintptr_t index)
{
    putenv((char *)(uintptr_t)option);
    process_become(crash_program, ways[index].name);
    _exit(3);
}

static struct child run(unsigned index, const char *with)
{
    option = with;
    return child_run(run_way, index);
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0);
    int found = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    if (found != 0)
        fail_msg("wanted %s, found %s", pattern, text);
}

static unsigned count(const char *text, const char *part)
{
    unsigned found = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        found++;
    return found;
}

static void assert_ended(const struct child *child, const struct way *way)
{
    if (way->signal == 0)
        assert_int_equal(WEXITSTATUS(child->status), 7);
    else
        assert_true(WIFSIGNALED(child->status) && WTERMSIG(child->status) == way->signal);
}

/* The emulator does not let a process read itself. */
static bool stacks_are_complete(void)
{
    return process_finds_modules() && !process_is_emulated();
}

static void reports_each_death(void **state)
{
    (void)state;
    char file[256];
    snprintf(file, sizeof file, "%s+0x", strrchr(crash_program, '/') != NULL ? strrchr(crash_program, '/') : crash_program);
    for (unsigned i = 0; i < WAYS; i++) {
        const struct child child = run(i, "HAKMEM_CRASH=1");
        assert_ended(&child, &ways[i]);
        assert_matches(child.output, ways[i].first_line);
        if (ways[i].own_calls == 0) {
            assert_int_equal(count(child.output, "hakmem"), 0);
            continue;
        }
        assert_matches(child.output, CALL);
        assert_matches(child.output, HEAP);
        assert_int_equal(count(child.output, "hakmem: crash: the heap"), 1);
        if (stacks_are_complete() && count(child.output, file) < ways[i].own_calls)
            fail_msg("%s: wanted %u calls in %s, found %s", ways[i].name, ways[i].own_calls, file, child.output);
    }
}

/* What check mode has nothing to say of is reported as without it. */
static void checks_do_not_guess(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        if (ways[i].signal != SIGSEGV)
            continue;
        const struct child child = run(i, "HAKMEM_CHECK=1");
        assert_ended(&child, &ways[i]);
        if (ways[i].die == write_into_block) {
            assert_matches(child.output, "ERROR: hakmem: closed-page on address 0x[0-9a-f]+5 \\(");
        } else {
            assert_int_equal(count(child.output, "ERROR"), 0);
            assert_matches(child.output, ways[i].first_line);
        }
    }
}

static void is_silent_unless_asked(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++) {
        const struct child child = run(i, "HAKMEM_CRASH=0");
        assert_ended(&child, &ways[i]);
        assert_int_equal(count(child.output, "hakmem: crash"), 0);
        assert_int_equal(count(child.output, "    #"), 0);
    }
}

static void bad_value_warns(void **state)
{
    (void)state;
    const struct child child = run(WAYS - 1, "HAKMEM_CRASH=yes");
    assert_matches(child.output, "^hakmem: warning: HAKMEM_CRASH=yes: legal values are 0, 1; using 0$");
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; argc > 1 && i < WAYS; i++) {
        if (strcmp(argv[1], ways[i].name) == 0) {
            die(&ways[i]);
            return 4;
        }
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_each_death),
        cmocka_unit_test(checks_do_not_guess),
        cmocka_unit_test(is_silent_unless_asked),
        cmocka_unit_test(bad_value_warns),
    };
    family_require_hakmem();
    crash_program = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
