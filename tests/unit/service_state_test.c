/* The service thread of os/os.h: what it has of its own, name, signals, thread-local variables and stack. */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "child.h"
#include "os/os.h"
#include "process.h"
#include "refused_call.h"
#include "scale.h"
#include "service.h"

static struct lock lock = LOCK_INITIALIZER(LOCK_SPAN);
static _Thread_local uintptr_t initialized = 7;

static void is_named(void)
{
    char path[64];
    char found[32] = "";
    service_start_sleeper();
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", service.id);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fgets(found, sizeof found, file) != NULL);
    fclose(file);
    CHECK(strcmp(found, "hak-service\n") == 0);
    service_open_gate();
}

static uint64_t service_mask;
static int handled_in;

static void sleep_with_mask(void)
{
    service_mask = service_blocked_signals();
    service_sleep();
}

static void handle(int number)
{
    (void)number;
    handled_in = os_thread_id();
}

static uint64_t blockable_signals(void)
{
    uint64_t bits = 0;
    for (int number = 1; number <= 64; number++)
        if (number != SIGKILL && number != SIGSTOP && number != SIGSYS)
            bits |= (uint64_t)1 << (number - 1);
    return bits;
}

static void signals_are_for_others(void)
{
    sigset_t one;
    struct sigaction action = {.sa_handler = handle};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    uint64_t mask = service_blocked_signals();
    service_start(sleep_with_mask);
    CHECK(service_blocked_signals() == mask);
    service_wait_for_rounds(1);
    /* pthread_sigmask leaves libc's own two or three alone, and the emulator does not know the last two. */
    uint64_t others = (SERVICE_IS_LIBCS ? (uint64_t)7 << 31 : 0) | (process_is_emulated() ? (uint64_t)3 << 62 : 0);
    CHECK((service_mask | others) == (blockable_signals() | others));

    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    usleep(20000);
    CHECK(handled_in == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
    CHECK(handled_in == os_thread_id());
    service_open_gate();
}

/* The program's handlers would run in it. */
static void none_begins_where_signals_cannot_be_kept_back(void)
{
    if (SERVICE_IS_LIBCS || process_is_emulated()) {
        CANNOT_TRY("libc blocks the signals, or the emulator takes no filter");
        return;
    }
    refuse_call(SYS_rt_sigprocmask, EPERM);
    CHECK(!os_service_start(sleep_with_mask, service_name, &initialized) && !os_service_runs());
}

static size_t counter;

static void count_locked(void)
{
    for (size_t i = 0; i < scaled_work(200 * SERVICE_ROUNDS); i++) {
        lock_take(&lock);
        CHECK(lock_is_mine(&lock));
        counter++;
        lock_drop(&lock);
        CHECK(!lock_is_mine(&lock));
    }
}

static void locks_exclude_it(void)
{
    service_start(count_locked);
    count_locked();
    service_wait_for_end();
    CHECK(counter == 2 * scaled_work(200 * SERVICE_ROUNDS));
}

static const int *service_errno;
static int errno_seen;

static void fail_in_kernel(void)
{
    service_errno = &errno;
    for (int i = 0; i < SERVICE_ROUNDS; i++)
        CHECK(syscall(SYS_close, -1) == -1);
    errno_seen = errno;
}

static void errno_is_its_own(void)
{
    errno = 66;
    const int *own = &errno;
    service_start(fail_in_kernel);
    while (os_service_runs())
        CHECK(*own == 66);
    CHECK(*own == 66 && errno_seen == EBADF);
    CHECK(service_errno != own);
}

static uintptr_t service_canary;

/* What the stack protector compares, where each thread has its own copy. */
static uintptr_t canary(void)
{
    uintptr_t word = 0;
#if defined(__x86_64__)
    __asm__("movq %%fs:40, %0" : "=r"(word));
#endif
    return word;
}

static void keep_canary(void)
{
    service_canary = canary();
}

static void stack_protector_works(void)
{
    service_start(keep_canary);
    service_wait_for_end();
    CHECK(service_canary == canary());
}

static uintptr_t found_initialized;
static size_t found_zero;

static void write_locals(void)
{
    found_initialized = initialized;
    initialized = 9;
    for (size_t i = 0; i < sizeof service_wide; i++)
        found_zero += service_wide[i] == 0;
    char here[KIB];
    memset(here, 2, sizeof here);
    memset(service_wide, 1, sizeof service_wide);
    for (size_t i = 0; i < sizeof here; i++)
        CHECK(here[i] == 2);
    for (size_t i = 0; i < sizeof service_wide; i++)
        CHECK(service_wide[i] == 1);
}

/* Also the second time, in the same place. */
static void thread_locals_are_zero(void)
{
    for (size_t i = 1; i <= 2; i++) {
        CHECK(os_service_start(write_locals, service_name, &initialized));
        service_wait_for_end();
        CHECK(found_zero == i * sizeof service_wide);
        CHECK(found_initialized == (SERVICE_IS_LIBCS ? 7 : 0));
    }
    CHECK(initialized == 7);
    for (size_t i = 0; i < sizeof service_wide; i++)
        CHECK(service_wide[i] == 0);
}

/* Where nothing can be given back, it is cleared. */
static void locked_memory_is_cleared(void)
{
    if (geteuid() != 0 || mlockall(MCL_FUTURE) != 0) {
        CANNOT_TRY("so much memory may not be locked");
        return;
    }
    thread_locals_are_zero();
}

/* The emulator's page may be several of the system's. */
static bool is_resident(char *at)
{
    size_t page = os_page_size();
    unsigned char states[64 * KIB / 4096] = {0};
    unsigned char all = 0;
    CHECK(mincore((void *)((uintptr_t)at & ~(page - 1)), page, states) == 0);
    for (size_t i = 0; i < sizeof states; i++)
        all |= states[i];
    return (all & 1) != 0;
}

static void keeps_no_memory_when_ended(void)
{
    if (SERVICE_IS_LIBCS)
        return;
    service_start_sleeper();
    CHECK(is_resident(service.stack));
    service_open_gate();
    CHECK(!is_resident(service.stack));
}

static uint32_t fill_stack(uint32_t depth)
{
    volatile uint32_t piece[KIB / 4];
    piece[depth % 256] = 1;
    return depth == 0 ? 0 : fill_stack(depth - 1) + piece[depth % 256];
}

static void fill_too_much(void)
{
    service.rounds = fill_stack(MIB / KIB);
}

static void start_filling(uintptr_t unused)
{
    (void)unused;
    service_start(fill_too_much);
    service_wait_for_end();
}

/* Is the mapping of `at` preceded by one that nobody may touch? */
static bool is_guarded(const char *at)
{
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    char line[512];
    uintptr_t guard_end = 0;
    bool guarded = false;
    while (fgets(line, sizeof line, file) != NULL) {
        uintptr_t start = 0;
        uintptr_t end = 0;
        char access[5] = "";
        CHECK(sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, access) == 3);
        if (start <= (uintptr_t)at && (uintptr_t)at < end)
            guarded = start == guard_end;
        if (strcmp(access, "---p") == 0)
            guard_end = end;
    }
    fclose(file);
    return guarded;
}

static void stack_is_guarded(void)
{
    if (SERVICE_IS_LIBCS)
        return;
    service_start_sleeper();
    CHECK(is_guarded(service.stack));
    service_open_gate();
    struct child child = child_run(start_filling, 0);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGSEGV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(is_named),
        UNIT_TEST(signals_are_for_others),
        UNIT_TEST(none_begins_where_signals_cannot_be_kept_back),
        UNIT_TEST(locks_exclude_it),
        UNIT_TEST(errno_is_its_own),
        UNIT_TEST(stack_protector_works),
        UNIT_TEST(thread_locals_are_zero),
        UNIT_TEST(locked_memory_is_cleared),
        UNIT_TEST(keeps_no_memory_when_ended),
        UNIT_TEST(stack_is_guarded),
    };
    return cmocka_run_group_tests_name("service_state", tests, NULL, NULL);
}
