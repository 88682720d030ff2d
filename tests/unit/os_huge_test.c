/* os/os.h: huge pages, on the kernel that runs the test. */
#include "unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "os/os.h"
#include "process.h"

static char *committed(size_t bytes)
{
    char *at = os_reserve(NULL, bytes);
    CHECK(at != NULL && os_commit(at, bytes));
    return at;
}

/* Not the fake one. */
enum os_collapse __real_os_collapse(void *at);

/* The kernel has no huge page for two mappings, but for others it may. */
static void two_mappings_are_not_all_there_is(void)
{
    size_t huge = os_huge_page_size();
    char *at = committed(2 * huge);
    char *whole = (char *)align_up((uintptr_t)at, huge);
    memset(whole, 1, huge);
    enum os_collapse one = __real_os_collapse(whole);
    CHECK(os_forbid(whole + huge / 2, os_page_size()));
    if (one != OS_NEVER && !process_is_emulated()) /* the emulator takes any advice */
        CHECK(__real_os_collapse(whole) == OS_NOT_NOW);
    os_release(at, 2 * huge);
}

/* Asked without the library. An emulator says that it has done what is advised, and does not. */
static bool kernel_collapses(size_t huge)
{
    enum { COLLAPSE = 25 };
    char *at = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    char *whole = (char *)align_up((uintptr_t)at, huge);
    bool advised = madvise(whole, huge, MADV_NOHUGEPAGE) == 0;
    memset(whole, 1, huge);
    advised &= madvise(whole, huge, MADV_HUGEPAGE) == 0;
    bool done = advised && madvise(whole, huge, COLLAPSE) == 0 && process_mapping_huge_kib(whole) == huge >> 10;
    CHECK(munmap(at, 2 * huge) == 0);
    return done;
}

static void huge_pages_are_made_where_the_kernel_makes_them(void)
{
    size_t huge = os_huge_page_size();
    if (!kernel_collapses(huge)) {
        CANNOT_TRY("the kernel makes no huge pages here");
        return;
    }
    char *at = committed(2 * huge);
    char *whole = (char *)align_up((uintptr_t)at, huge);
    memset(whole, 1, huge);
    CHECK(process_mapping_huge_kib(whole) == 0);
    enum os_collapse came_to = OS_NOT_NOW; /* a page may be held by the kernel for a moment */
    for (int i = 0; i < 100 && came_to == OS_NOT_NOW; i++) {
        came_to = __real_os_collapse(whole);
        usleep(1000);
    }
    if (came_to == OS_NOT_NOW && !kernel_collapses(huge))
        CANNOT_TRY("the kernel makes no huge pages any more");
    else
        CHECK(came_to == OS_COLLAPSED && process_mapping_huge_kib(whole) == huge >> 10);
    os_release(at, 2 * huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(two_mappings_are_not_all_there_is),
        UNIT_TEST(huge_pages_are_made_where_the_kernel_makes_them),
    };
    return cmocka_run_group_tests_name("os_huge", tests, NULL, NULL);
}
