/* The service thread of os/os.h: how it starts and ends, and who may end meanwhile. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alone.h"
#include "base/atomic.h"
#include "base/fail.h"
#include "base/lock.h"
#include "child.h"
#include "os/os.h"
#include "process.h"
#include "scale.h"
#include "service.h"

enum { STARTERS = 4 };

static struct lock lock = LOCK_INITIALIZER(LOCK_SPAN);

/* Of this thread libc says nothing. */
static void starter_is_not_alone(void)
{
    bool before = alone();
    CHECK(before == alone_is_told());
    service_start(service_count_round);
    CHECK(!alone());
    service_wait_for_end();
    os_service_forget();
    CHECK(alone() == (before && !SERVICE_IS_LIBCS));
}

static void runs_its_body(void)
{
    CHECK(!os_service_runs());
    errno = 66;
    service_start(service_count_round);
    CHECK(errno == 66);
    service_wait_for_end();
    CHECK(service.rounds == 1);
}

enum { OUTLIVED = 3 };

static void outlive_it(uintptr_t unused)
{
    (void)unused;
    service_start(service_count_round);
    service_wait_for_end();
    usleep(1000);
    _exit(OUTLIVED);
}

static void process_outlives_it(void)
{
    struct child child = child_run(outlive_it, 0);
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == OUTLIVED);
}

static void is_one_at_a_time(void)
{
    service_start_sleeper();
    CHECK(service.id != 0 && service.id != os_thread_id());
    CHECK(os_service_runs());
    errno = 66;
    CHECK(!os_service_start(service_count_round, service_name, service_wide));
    CHECK(errno == 66);
    service_open_gate();
    CHECK(service.rounds == 1);
    service_start(service_count_round);
    service_wait_for_end();
    CHECK(service.rounds == 2);
}

static void starts_again_and_again(void)
{
    service_start(service_count_round);
    service_wait_for_end();
    size_t before = process_mapped_bytes();
    for (uint32_t i = 1; i < SERVICE_ROUNDS; i++) {
        service_start(service_count_round);
        service_wait_for_end();
    }
    CHECK(service.rounds == SERVICE_ROUNDS);
    CHECK(SERVICE_IS_LIBCS || process_mapped_bytes() == before); /* libc keeps stacks of ended threads */
}

static pthread_barrier_t meeting;
static uint32_t inside;
static uint32_t met;

static void be_alone(void)
{
    if (exchange_acquire(&inside, 1u) != 0)
        store_relaxed(&met, 1u);
    os_sleep(1);
    service_count_round();
    store_release(&inside, 0u);
}

static void *start_often(void *started)
{
    for (size_t i = 0; i < scaled_work(SERVICE_ROUNDS); i++) {
        pthread_barrier_wait(&meeting);
        *(size_t *)started += os_service_start(be_alone, service_name, service_wide);
        service_wait_for_end();
    }
    return NULL;
}

static void starters_meet(void)
{
    pthread_t threads[STARTERS];
    size_t started[STARTERS] = {0};
    size_t all = 0;
    CHECK(pthread_barrier_init(&meeting, NULL, STARTERS) == 0);
    for (int i = 0; i < STARTERS; i++)
        CHECK(pthread_create(&threads[i], NULL, start_often, &started[i]) == 0);
    for (int i = 0; i < STARTERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        all += started[i];
    }
    CHECK(met == 0);
    CHECK(all >= scaled_work(SERVICE_ROUNDS) && all == service.rounds);
}

static void give_no_memory(void)
{
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    const struct rlimit plenty = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    CHECK(!os_service_start(service_count_round, service_name, service_wide));
    CHECK(setrlimit(RLIMIT_AS, &plenty) == 0);
}

/* The limit is not for root. */
static void give_no_thread(void)
{
    struct rlimit limit;
    CHECK(getuid() != 0 || setuid(65534) == 0);
    CHECK(getrlimit(RLIMIT_NPROC, &limit) == 0);
    rlim_t most = limit.rlim_cur;
    limit.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
    CHECK(!os_service_start(service_count_round, service_name, service_wide));
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
}

static void refusals_change_nothing(void)
{
    if (SERVICE_IS_LIBCS)
        return;
    static uintptr_t global;
    uint64_t mask = service_blocked_signals();
    errno = 66;
    CHECK(!os_service_start(service_count_round, service_name, &global));
    CHECK(errno == 66);
    if (!process_is_emulated()) /* qemu does not limit address space */
        give_no_memory();
    give_no_thread();
    CHECK(!os_service_runs() && service.rounds == 0);
    CHECK(service_blocked_signals() == mask);
    service_start(service_count_round);
    service_wait_for_end();
    CHECK(service.rounds == 1);
}

static void *sleep_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void report(void)
{
    fail("found by the service");
}

/* With another thread of libc's, for which write is a cancellation point. */
static void report_in_service(uintptr_t unused)
{
    (void)unused;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sleep_for_ever, NULL) == 0);
    service_start(report);
    pause();
}

/* musl's abort looks into its own record of the thread, finds none, and ends the process by a fault. */
static void fatal_lines_end_the_process(void)
{
    struct child child = child_run(report_in_service, 0);
    CHECK(strcmp(child.output, "hakmem: fatal: found by the service\n") == 0);
    CHECK(WIFSIGNALED(child.status));
#if defined(__GLIBC__)
    CHECK(WTERMSIG(child.status) == SIGABRT);
#endif
}

static void *sleep_a_little(void *unused)
{
    usleep(20000);
    return unused;
}

static const char *program;

static void become(uintptr_t way)
{
    process_become(program, (const char *)way);
    CHECK(false);
}

static int end_by(const char *way)
{
    service_start_sleeper();
    pthread_t thread;
    if (strcmp(way, "return") == 0)
        return 0;
    if (strcmp(way, "last of two") == 0)
        CHECK(pthread_create(&thread, NULL, sleep_a_little, NULL) == 0);
    pthread_exit(NULL);
}

static void process_ends_without_it(void)
{
    CHECK(child_run(become, (uintptr_t) "return").status == 0);
    if (SERVICE_IS_LIBCS)
        return;
    CHECK(child_run(become, (uintptr_t) "last").status == 0);
    CHECK(child_run(become, (uintptr_t) "last of two").status == 0);
}

static void become_another_program(uintptr_t unused)
{
    (void)unused;
    service_start_sleeper();
    become((uintptr_t) "return");
}

static void process_becomes_another(void)
{
    CHECK(child_run(become_another_program, 0).status == 0);
}

static void start_in_child(uintptr_t unused)
{
    (void)unused;
    CHECK(os_service_runs());
    CHECK(!os_service_start(service_count_round, service_name, service_wide));
    os_service_forget();
    CHECK(!os_service_runs());
    for (int i = 0; i < 3; i++) {
        service_start_sleeper();
        service_open_gate();
    }
}

static void forked_child_starts_its_own(void)
{
    if (HAK_TSAN) {
        CANNOT_TRY("ThreadSanitizer supports no new threads after such a fork");
        return;
    }
    service_start_sleeper();
    int parents = service.id;
    for (int i = 0; i < 3; i++) {
        struct child child = child_run(start_in_child, 0);
        CHECK(child.status == 0 && child.output[0] == '\0');
    }
    CHECK(os_service_runs() && service.id == parents);
    service_open_gate();
    service_start_sleeper();
    service_open_gate();
}

static void work_until_gate_opens(void)
{
    while (load_acquire(&service.gate) == 0) {
        lock_take(&lock);
        CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
        lock_drop(&lock);
        os_sleep(1);
        service_count_round();
    }
}

static void *start_and_end(void *unused)
{
    service_start(work_until_gate_opens);
    service_wait_for_rounds(1);
    return unused;
}

/* What the starter had, its stack and its thread-local variables, is no longer mapped. */
static void starter_ends_before_it(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    size_t bytes = 4 * MIB;
    void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack, bytes) == 0);
    CHECK(pthread_create(&thread, &attributes, start_and_end, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(munmap(stack, bytes) == 0);
    service_wait_for_rounds(load_acquire(&service.rounds) + 20);
    CHECK(os_service_runs());
    service_open_gate();
    service_start(service_count_round);
    service_wait_for_end();
}

int main(int count, char **arguments)
{
    program = arguments[0];
    if (count > 1)
        return end_by(arguments[1]);
    const struct CMUnitTest tests[] = {
        UNIT_TEST(starter_is_not_alone),
        UNIT_TEST(runs_its_body),
        UNIT_TEST(process_outlives_it),
        UNIT_TEST(is_one_at_a_time),
        UNIT_TEST(starts_again_and_again),
        UNIT_TEST(starters_meet),
        UNIT_TEST(refusals_change_nothing),
        UNIT_TEST(fatal_lines_end_the_process),
        UNIT_TEST(process_ends_without_it),
        UNIT_TEST(process_becomes_another),
        UNIT_TEST(forked_child_starts_its_own),
        UNIT_TEST(starter_ends_before_it),
    };
    return cmocka_run_group_tests_name("service_thread", tests, NULL, NULL);
}
