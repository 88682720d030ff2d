/* check/guard.h: which blocks are guarded, that they are good blocks, what is said when they are misused. */
#include "unit.h"

#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "check/guard.h"
#include "child.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "fake_os.h"
#include "hakmem.h"
#include "os/os.h"
#include "process.h"

enum { SLOTS = 8, TRIES = 10000 };

static void start(size_t bytes)
{
    policy.guard_bytes = bytes;
    policy.guard_slots = SLOTS;
    guard_start();
}

static bool is_guarded(const void *p)
{
    struct guard_place place;
    return guard_find((uintptr_t)p, &place) && place.inside;
}

/* A guarded block; the others that were asked for until then are freed. */
static char *guarded(size_t size)
{
    for (int i = 0; i < TRIES; i++) {
        char *block = hak_malloc(size);
        CHECK(block != NULL);
        if (is_guarded(block))
            return block;
        hak_free(block);
    }
    CHECK(!"no block is guarded");
    return NULL;
}

/* At one end of its page. */
static char *guarded_at(size_t size, bool at_start)
{
    for (int i = 0; i < TRIES; i++) {
        char *block = guarded(size);
        if (((uintptr_t)block % os_page_size() == 0) == at_start)
            return block;
        hak_free(block);
    }
    CHECK(!"no block is at that end");
    return NULL;
}

/* How many of so many blocks of 64 bytes are guarded, each freed before the next. */
static unsigned count_guarded(int blocks)
{
    unsigned found = 0;
    for (int i = 0; i < blocks; i++) {
        void *block = hak_malloc(64);
        found += is_guarded(block);
        hak_free(block);
    }
    return found;
}

static void samples_by_bytes(void)
{
    start(64 << 10);
    unsigned found = count_guarded(1 << 20);
    CHECK(found > 1000 && found <= 1024);
}

/* Between heartbeats chance decides. */
static void samples_rarely(void)
{
    policy.heartbeat_bytes = 64 << 10;
    start(1 << 20);
    unsigned found = count_guarded(1 << 23);
    /* 512 are to be expected, of 8,192 heartbeats: the deviation is 22. */
    CHECK(found > 512 - 6 * 22 && found < 512 + 6 * 22);
}

static void samples_nothing_unless_asked(void)
{
    CHECK(count_guarded(1 << 20) == 0);
}

static void serves_good_blocks(void)
{
    start(1);
    for (size_t size = 1; size <= min_size(os_page_size(), SMALL_MAX); size = size < 40 ? size + 1 : size * 5 / 4) {
        char *block = guarded(size);
        CHECK((uintptr_t)block % (size < 16 ? 8 : 16) == 0);
        CHECK(hak_malloc_usable_size(block) == size);
        memset(block, 1, size);
        hak_free(block);
    }
}

static void serves_aligned_blocks(void)
{
    start(1);
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        for (int i = 0; i < 200; i++) {
            char *block = hak_aligned_alloc(alignment, 100);
            CHECK((uintptr_t)block % alignment == 0);
            memset(block, 2, 100);
            hak_free(block);
        }
    }
}

static void is_zeroed_and_resized(void)
{
    start(1);
    for (int i = 0; i < 1000; i++) {
        unsigned char *block = hak_calloc(7, 13);
        for (size_t j = 0; j < 91; j++)
            CHECK(block[j] == 0);
        memset(block, i, 91);
        for (size_t size = 80; size < 9000; size = size * 3 / 2) {
            block = hak_realloc(block, size);
            CHECK(block[0] == (unsigned char)i && block[79] == (unsigned char)i);
        }
        block = hak_realloc(block, 5);
        CHECK(block[4] == (unsigned char)i);
        hak_free(block);
    }
}

static void reuses_the_oldest(void)
{
    start(1);
    char *held[SLOTS];
    for (int i = 0; i < SLOTS; i++)
        held[i] = guarded(32);
    for (int i = 0; i < 100; i++)
        CHECK(!is_guarded(hak_malloc(32)));
    for (int i = 0; i < SLOTS; i++)
        hak_free(held[i]);
    for (int i = 0; i < SLOTS; i++) {
        char *again = guarded(32);
        CHECK((uintptr_t)again / os_page_size() == (uintptr_t)held[i] / os_page_size());
    }
}

static void lives_without_memory(void)
{
    start(1);
    hak_free(hak_malloc(1));
    fake_os_refuse(FAKE_RESERVE, 1, 1);
    for (int i = 0; i < 100; i++)
        CHECK(!is_guarded(hak_malloc(32)));
    fake_os_obey();
}

static void lives_without_pages(void)
{
    start(1);
    hak_free(guarded(16));
    fake_os_refuse(FAKE_COMMIT, 1, FAKE_EVERY);
    for (int i = 0; i < 100; i++) {
        void *block = hak_malloc(16);
        CHECK(block != NULL && !is_guarded(block));
        hak_free(block);
    }
    fake_os_obey();
    hak_free(guarded(16));
}

/* ---- Misuse. */

static char *volatile kept;

static void read_after_free(uintptr_t unused)
{
    (void)unused;
    start(1);
    kept = guarded(24);
    hak_free(kept);
    volatile char byte = kept[5];
    (void)byte;
}

static void write_after_free(uintptr_t unused)
{
    (void)unused;
    start(1);
    kept = guarded(24);
    hak_free(kept);
    kept[23] = 1;
}

static void write_beyond(uintptr_t unused)
{
    (void)unused;
    start(1);
    kept = guarded_at(32, false);
    kept[32] = 1;
}

/* Where no block has been yet. */
static void read_far_beyond(uintptr_t unused)
{
    (void)unused;
    start(1);
    kept = guarded(32);
    volatile char byte = kept[2 * os_page_size()];
    (void)byte;
}

static void read_before(uintptr_t unused)
{
    (void)unused;
    start(1);
    kept = guarded_at(32, true);
    volatile char byte = kept[-3];
    (void)byte;
}

static void close_page(uintptr_t unused)
{
    (void)unused;
    start(1);
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
    start(1);
    kept = guarded_at(32, true);
    void (*function)(void);
    memcpy(&function, &(char *){kept + 16}, sizeof function);
    function();
}

static void write_into_slack(uintptr_t at_start)
{
    start(1);
    kept = guarded_at(30, at_start != 0);
    kept[31] = 1;
    hak_free(kept);
}

static void free_twice(uintptr_t unused)
{
    (void)unused;
    start(1);
    kept = guarded(24);
    hak_free(kept);
    hak_free(kept);
}

static void free_as_larger(uintptr_t unused)
{
    (void)unused;
    start(1);
    hak_free_sized(guarded(24), 24);
    hak_free_sized(guarded(24), 25);
}

static void free_inside(uintptr_t unused)
{
    (void)unused;
    start(1);
    kept = guarded(64);
    hak_free(kept + 16);
}

static void resize_after_free(uintptr_t unused)
{
    (void)unused;
    start(1);
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
    start(1);
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
    start(1);
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

/* ---- Threads and forks. */

enum { THREADS = 6, ROUNDS = 20000, SHARED = 64 };

static char *shared[SHARED];

/* Puts blocks where others take them, and frees what it finds there. */
static void *exchange(void *seed)
{
    uint64_t state = (uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t size = 8 + (state >> 40) % 200;
        char *block = hak_malloc(size);
        memset(block, (int)(size % 251), size);
        block[0] = (char)(size - 8);
        char *found = __atomic_exchange_n(&shared[(state >> 33) % SHARED], block, __ATOMIC_ACQ_REL);
        if (found == NULL)
            continue;
        size = 8 + (size_t)(unsigned char)found[0];
        for (size_t j = 1; j < size; j++)
            CHECK(found[j] == (char)(size % 251));
        hak_free(found);
    }
    return NULL;
}

static void is_for_many_threads(void)
{
    start(1);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, exchange, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SHARED; i++)
        hak_free(shared[i]);
}

static void survives_forks(void)
{
    start(1);
    char *block = guarded(40);
    memset(block, 3, 40);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(block[39] == 3);
        hak_free(block);
        hak_free(guarded(50));
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(block[39] == 3);
    hak_free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(samples_by_bytes),
        UNIT_TEST(samples_rarely),
        UNIT_TEST(samples_nothing_unless_asked),
        UNIT_TEST(serves_good_blocks),
        UNIT_TEST(serves_aligned_blocks),
        UNIT_TEST(is_zeroed_and_resized),
        UNIT_TEST(reuses_the_oldest),
        UNIT_TEST(lives_without_memory),
        UNIT_TEST(lives_without_pages),
        UNIT_TEST(faults_are_reported),
        UNIT_TEST(barriers_are_not),
        UNIT_TEST(bad_frees_are_reported),
        UNIT_TEST(programs_handlers_are_called),
        UNIT_TEST(other_faults_are_left_alone),
        UNIT_TEST(is_for_many_threads),
        UNIT_TEST(survives_forks),
    };
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
