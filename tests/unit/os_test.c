/* os/os.h: the contract, on the system that runs the test. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "child.h"
#include "os/os.h"
#include "process.h"
#include "refused_call.h"

static size_t page;

static char *reserve(size_t pages)
{
    page = os_page_size();
    char *at = os_reserve(NULL, pages * page);
    CHECK(at != NULL);
    return at;
}

static char *committed(size_t pages)
{
    char *at = reserve(pages);
    CHECK(os_commit(at, pages * page));
    return at;
}

static void check_bytes(const char *at, size_t bytes, char wanted)
{
    for (size_t i = 0; i < bytes; i++)
        CHECK(at[i] == wanted);
}

static void page_size_is_the_systems(void)
{
    CHECK(os_page_size() == (size_t)sysconf(_SC_PAGESIZE));
    CHECK(is_power_of_two(os_page_size()));
    const char *emulated = getenv("QEMU_PAGESIZE");
    CHECK(emulated == NULL || os_page_size() == strtoul(emulated, NULL, 10));
}

static void touch(uintptr_t at)
{
    alarm(0);
    *(volatile char *)at = 1;
}

static void reserved_pages_become_usable(void)
{
    char *at = reserve(4);
    CHECK(os_commit(at + page, 2 * page));
    check_bytes(at + page, 2 * page, 0);
    memset(at + page, 1, 2 * page);
    struct child untouchable = child_run(touch, (uintptr_t)at);
    CHECK(untouchable.status != 0);
    struct child usable = child_run(touch, (uintptr_t)at + page);
    CHECK(usable.status == 0);
}

static void reserves_where_told(void)
{
    char *at = reserve(8);
    os_release(at + 2 * page, 2 * page);
    CHECK(os_reserve(at + 2 * page, 2 * page) == at + 2 * page);
    CHECK(os_reserve(at + 2 * page, page) == NULL);
    CHECK(os_reserve(at, 8 * page) == NULL);
    CHECK(os_reserve(NULL, (size_t)1 << 62) == NULL);
}

static void purged_pages_read_as_zero(void)
{
    char *at = committed(6);
    memset(at, 3, 6 * page);
    CHECK(os_purge(at + page, 4 * page));
    check_bytes(at, page, 3);
    check_bytes(at + page, 4 * page, 0);
    check_bytes(at + 5 * page, page, 3);
}

/* Locked memory cannot be given back. */
static void refused_purge_keeps_content(void)
{
    char *at = committed(2);
    memset(at, 3, 2 * page);
    if (mlock(at, 2 * page) != 0) {
        CANNOT_TRY("memory may not be locked");
        return;
    }
    errno = 44;
    bool gone = os_purge(at, 2 * page);
    check_bytes(at, 2 * page, gone ? 0 : 3);
    CHECK(errno == 44);
}

/* As emulators have done, which answered that it was done. */
static void feigned_purge_is_refused(void)
{
    if (!calls_can_be_refused(__func__))
        return;
    refuse_call(SYS_madvise, 0);
    char *at = committed(2);
    memset(at, 3, 2 * page);
    CHECK(!os_purge(at, 2 * page) && !os_purge(at, page));
    check_bytes(at, 2 * page, 3);
    CHECK(os_close(at, page) && os_commit(at, page));
    check_bytes(at, page, 0);
}

/* Nor is what it holds shown to the next. */
static void closed_pages_read_as_zero(void)
{
    char *at = committed(4);
    memset(at, 3, 4 * page);
    bool locked = mlock(at + page, page) == 0;
    if (!locked)
        CANNOT_TRY("memory cannot be locked here");
    CHECK(os_close(at, 3 * page));
    CHECK(child_dies_of(SIGSEGV, touch, (uintptr_t)at, "") && child_dies_of(SIGSEGV, touch, (uintptr_t)(at + page), ""));
    CHECK(os_commit(at, 3 * page));
    check_bytes(at, 3 * page, 0);
    check_bytes(at + 3 * page, page, 3);
    if (locked)
        CHECK(munlock(at + page, page) == 0);
    os_release(at, 4 * page);
}

static char *hammered;
static bool is_closed;
static bool is_over;

static void wait_until_open(int signal)
{
    (void)signal;
    while (load_acquire(&is_closed))
        continue;
}

static void *write_all_the_time(void *unused)
{
    while (!load_relaxed(&is_over))
        store_relaxed(hammered, (char)1);
    return unused;
}

/* What another thread writes until the last moment, too. */
static void closed_pages_read_as_zero_whoever_writes(void)
{
    enum { ROUNDS = 2000 };
    pthread_t writer;
    if (HAK_TSAN) {
        CANNOT_TRY("ThreadSanitizer runs handlers in its own way");
        return;
    }
    hammered = committed(1);
    CHECK(signal(SIGSEGV, wait_until_open) != SIG_ERR);
    CHECK(pthread_create(&writer, NULL, write_all_the_time, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        while (load_relaxed(hammered) == 0)
            continue;
        store_release(&is_closed, true);
        CHECK(os_close(hammered, page));
        CHECK(mprotect(hammered, page, PROT_READ) == 0);
        CHECK(load_relaxed(hammered) == 0);
        CHECK(os_commit(hammered, page));
        store_release(&is_closed, false);
    }
    store_relaxed(&is_over, true);
    CHECK(pthread_join(writer, NULL) == 0);
    os_release(hammered, page);
}

static size_t present;

static bool count_present(void *pages, size_t bytes)
{
    present += bytes;
    return *(char *)pages == 0;
}

/* Until one is not as it should be. */
static void finds_what_is_in_memory(void)
{
    enum { MANY = 1300, FIRST = 608, RUN = 20 }; /* which the kernel is asked for at once, whatever its pages are */
    char *at = committed(MANY);
    if (process_is_emulated() && page > 4096) {
        CANNOT_TRY("the emulator answers in its host's pages");
        return;
    }
    memset(at + FIRST * page, 0, RUN * page);
    at[(MANY - 1) * page] = 0;
    CHECK(os_each_present(at, MANY * page, count_present) && present == (RUN + 1) * page);
    CHECK(os_resident(at, MANY * page) == (RUN + 1) * page);
    present = 0;
    at[FIRST * page] = 1;
    CHECK(!os_each_present(at, MANY * page, count_present) && present == RUN * page);
    CHECK(at[FIRST * page] == 1);
    os_release(at, MANY * page);
}

/* Not the fake one. */
bool __real_os_is_beyond(size_t bytes);

/* 64 TiB are more than a machine has, and 128 more than a process may map. */
static void promises_are_the_kernels(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    int policy = -1;
    CHECK(file != NULL && fscanf(file, "%d", &policy) == 1);
    CHECK(fclose(file) == 0);
    errno = 44;
    CHECK(!__real_os_is_beyond(page) && !__real_os_is_beyond(MIB));
    CHECK(__real_os_is_beyond((size_t)1 << 47));
    if (policy != 1)
        CHECK(__real_os_is_beyond((size_t)1 << 46));
    CHECK(errno == 44);
}

static void forbidden_pages_keep_content(void)
{
    char *at = committed(2);
    memset(at, 1, 2 * page);
    CHECK(os_forbid(at, page));
    CHECK(child_dies_of(SIGSEGV, touch, (uintptr_t)at, ""));
    CHECK(os_commit(at, page));
    check_bytes(at, 2 * page, 1);
    os_release(at, 2 * page);
}

static void cleared_pages_read_as_zero(void)
{
    enum { MANY = 1300 };
    char *at = committed(MANY);
    for (size_t i = 0; i < MANY; i += 1 + i % 7)
        memset(at + i * page, 1, page);
    size_t resident = os_resident(at, MANY * page);
    os_clear(at, MANY * page);
    CHECK(os_resident(at, MANY * page) <= resident);
    check_bytes(at, MANY * page, 0);
    os_release(at, MANY * page);
}

static void renewed_pages_are_fresh(void)
{
    char *at = committed(3);
    memset(at, 3, 3 * page);
    CHECK(os_renew(at + page, page));
    check_bytes(at, page, 3);
    check_bytes(at + page, page, 0);
    check_bytes(at + 2 * page, page, 3);
}

static void holes_are_filled_only_if_empty(void)
{
    char *at = committed(4);
    memset(at, 3, 4 * page);
    CHECK(!os_refill_hole(at, page));
    os_release(at + page, 2 * page);
    CHECK(!os_refill_hole(at, 4 * page));
    CHECK(os_refill_hole(at + page, 2 * page));
    check_bytes(at, page, 3);
    check_bytes(at + page, 2 * page, 0);
    memset(at + page, 4, 2 * page);
}

static void moved_pages_keep_content(void)
{
    char *from = committed(4);
    char *to = committed(10);
    memset(from, 5, 4 * page);
    memset(to, 6, 10 * page);
    CHECK(os_move(from, 4 * page, to + page, 8 * page));
    check_bytes(to, page, 6);
    check_bytes(to + page, 4 * page, 5);
    check_bytes(to + 5 * page, 4 * page, 0);
    check_bytes(to + 9 * page, page, 6);
    CHECK(os_refill_hole(from, 4 * page));
}

/* Nor for a moment, in which another thread may want to fill the hole behind it. Below the stack it is never granted. */
static bool asks_without_growing(char *at)
{
    uint64_t before = os_calls[OS_MUNMAP];
    CHECK(os_can_move(at, 8 * page));
    return os_calls[OS_MUNMAP] == before || (uintptr_t)at > (uintptr_t)&before;
}

/* The question may not grow the mapping, however much room there is above it. */
static void asking_for_a_move_changes_nothing(void)
{
    static const size_t places[] = {64 * GIB, 33 * TIB, 60 * TIB};
    page = os_page_size();
    size_t tried = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *at = os_reserve((void *)places[i], 8 * page);
        if (at == NULL)
            continue; /* small address spaces and sanitizers */
        tried++;
        CHECK(os_commit(at, 8 * page));
        CHECK(asks_without_growing(at));
        CHECK(os_reserve(at + 8 * page, page) == at + 8 * page);
        CHECK(os_reserve(at + GIB, page) == at + GIB);
        CHECK(mprotect(at, page, PROT_READ) == 0);
        CHECK(!os_can_move(at, 8 * page)); /* two mappings now */
        os_release(at + GIB, page);
        os_release(at, 9 * page);
    }
    CHECK(tried != 0);
}

/* A user may have split the block's mapping, with madvise or mprotect. Kernels differ in whether they move it
 * then; one that does not must leave everything as it was. */
static void refused_move_changes_nothing(void)
{
    char *from = committed(6);
    char *to = committed(20);
    memset(from, 5, 6 * page);
    memset(to, 6, 20 * page);
    CHECK(madvise(from + 2 * page, 2 * page, MADV_DONTFORK) == 0);
    if (os_move(from, 6 * page, to, 18 * page)) {
        check_bytes(to, 6 * page, 5);
        return;
    }
    check_bytes(from, 6 * page, 5);
    memset(to, 7, 20 * page);
    CHECK(!os_refill_hole(to, 20 * page));
}

static void looks_without_faulting(void)
{
    char *at = committed(4);
    *(uint32_t *)(void *)(at + page) = 0xfedcba98u;
    CHECK(os_holds(at + page, 0xfedcba98u));
    CHECK(!os_holds(at + page, 1));
    CHECK(os_holds(at, 0) && !os_holds(at, 1));
    os_release(at, 2 * page);
    CHECK(!os_holds(at + page, 0xfedcba98u) && !os_holds(at, 0));
    CHECK(!os_holds(reserve(1), 0));
}

static void sets_a_bit_without_faulting(void)
{
    char *at = committed(2);
    uintptr_t *word = (uintptr_t *)(void *)(at + page);
    *word = 0xfedc0000u;
    CHECK(!os_set_bit(word, 0xfedc0001u, 5) && *word == 0xfedc0000u);
    CHECK(os_set_bit(word, 0xfedc0000u, 5) && *word == 0xfedc0020u);
    CHECK(os_set_bit(word, 0xfedc0020u, 5) && *word == 0xfedc0020u);
    *word = (uintptr_t)-1 / 3;
    CHECK(os_set_bit(word, 0x55555555u, 31) && *word == ((uintptr_t)-1 / 3 | 0x80000000u));
    os_release(at, 2 * page);
    CHECK(!os_set_bit(word, 0xfedc0020u, 5) && !os_set_bit(word, 0, 5));
}

static void errno_is_kept(void)
{
    char *at = committed(2);
    errno = 55;
    CHECK(os_reserve(at, page) == NULL);
    CHECK(!os_refill_hole(at, page));
    CHECK(!os_commit((void *)(UINTPTR_MAX - MIB + 1), page));
    CHECK(!os_move(at, page, at, page));
    CHECK(!os_holds(NULL, 0) && !os_set_bit(NULL, 0, 1));
    (void)os_barrier();
    (void)os_random();
    (void)os_address_limit();
    CHECK(errno == 55);
}

static void *tell_id(void *out)
{
    *(int *)out = os_thread_id();
    return NULL;
}

static void threads_have_numbers(void)
{
    pthread_t thread;
    int other = 0;
    CHECK(os_thread_id() == getpid());
    CHECK(pthread_create(&thread, NULL, tell_id, &other) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(other > 0 && other != getpid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(page_size_is_the_systems),
        UNIT_TEST(reserved_pages_become_usable),
        UNIT_TEST(reserves_where_told),
        UNIT_TEST(purged_pages_read_as_zero),
        UNIT_TEST(refused_purge_keeps_content),
        UNIT_TEST(feigned_purge_is_refused),
        UNIT_TEST(closed_pages_read_as_zero),
        UNIT_TEST(closed_pages_read_as_zero_whoever_writes),
        UNIT_TEST(finds_what_is_in_memory),
        UNIT_TEST(promises_are_the_kernels),
        UNIT_TEST(forbidden_pages_keep_content),
        UNIT_TEST(cleared_pages_read_as_zero),
        UNIT_TEST(renewed_pages_are_fresh),
        UNIT_TEST(holes_are_filled_only_if_empty),
        UNIT_TEST(moved_pages_keep_content),
        UNIT_TEST(asking_for_a_move_changes_nothing),
        UNIT_TEST(refused_move_changes_nothing),
        UNIT_TEST(looks_without_faulting),
        UNIT_TEST(sets_a_bit_without_faulting),
        UNIT_TEST(errno_is_kept),
        UNIT_TEST(threads_have_numbers),
    };
    return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
