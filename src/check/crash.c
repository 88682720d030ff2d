#include "check/crash.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/fail.h"
#include "base/fmt.h"
#include "check/check.h"
#include "check/checked_report.h"
#include "check/guard.h"
#include "check/last.h"
#include "check/nearest.h"
#include "check/run.h"
#include "check/stack_text.h"
#include "config/policy.h"
#include "heap/life.h"
#include "heap/shelf.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "os/frame.h"
#include "os/handler.h"
#include "os/os.h"
#include "span/span.h"

static const struct {
    int number;
    const char *name;
    bool has_address;
} signals[] = {{SIGSEGV, "SIGSEGV", true}, {SIGBUS, "SIGBUS", true}, {SIGABRT, "SIGABRT", false}};

enum { SIGNALS = sizeof signals / sizeof signals[0] };

/* What the program had before. */
static struct sigaction before[SIGNALS];

/* The thread that reports; others that crash meanwhile do not, and wait for its end before they end the process. */
static int reporting;
static uint32_t reported; /* all is written */

enum { WAITS_MOST = 500, WAIT_MS = 10 };

static bool begin(void)
{
    int nobody = 0;
    return __atomic_compare_exchange_n(&reporting, &nobody, os_thread_id(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void crash_wait_while(uint32_t *word, uint32_t value, uint32_t after)
{
    for (int waits = 0; waits < WAITS_MOST && load_relaxed(word) == value; waits++)
        os_sleep(WAIT_MS);
    (void)__atomic_compare_exchange_n(word, &value, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void wait_for_report(void)
{
    if (load_relaxed(&reporting) != os_thread_id()) /* else it crashed while it reported */
        crash_wait_while(&reported, 0, 1);
}

static void write_heap(void)
{
    size_t small = 0;
    size_t holes = 0;
    unsigned heaps = 0;
    struct large_stats large;
    large_stats(&large);
    small += run_counts().bytes;
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next) {
        heaps++;
        holes += load_relaxed(&heap->hole_bytes);
        small += shelf_out_bytes(heap);
    }
    note("hakmem: crash: the heap: bytes in small blocks, live and cached: %zu, in live large blocks: %zu (%zu blocks), in freed "
         "ones that are kept: %zu, of free units: %zu, of holes: %zu; threads that have had a heap at once: %u",
         small, large.live_bytes, large.live_blocks, bigcache_bytes(), span_dirty_bytes(), holes, heaps);
}

static void write_rest(void)
{
    write_heap();
    if (policy.checks != 0)
        last_write(os_thread_id());
}

static void write_signal(unsigned which, const siginfo_t *info, const void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    bool sent = info->si_code <= 0; /* by kill, raise and the like: there is no address */
    if (signals[which].has_address && !sent && policy.checks != 0 && checked_report_fault(address, context))
        return;
    if (!signals[which].has_address || sent) {
        note("hakmem: crash: %s, thread %d", signals[which].name, os_thread_id());
    } else {
        char where[160];
        struct guard_place place;
        if (guard_find(address, &place))
            fmt_print(where, sizeof where, "among the guarded blocks");
        else
            nearest_describe(address, where, sizeof where);
        if (address == 0 && info->si_code == SI_KERNEL) /* x86 does not say at which */
            note("hakmem: crash: %s, thread %d: at an address that no memory can have", signals[which].name, os_thread_id());
        else
            note("hakmem: crash: %s at %p, thread %d: the address is %s", signals[which].name, info->si_addr, os_thread_id(), where);
    }
    struct os_frame frame = os_frame_interrupted(context);
    stack_write_whole(&frame);
    write_rest();
    if (policy.checks != 0)
        check_note_changed();
}

static void handle(int number, siginfo_t *info, void *context)
{
    unsigned which = 0;
    while (which + 1 < SIGNALS && signals[which].number != number)
        which++;
    int saved = errno;
    if (begin()) {
        write_signal(which, info, context);
        store_relaxed(&reported, 1u);
    } else {
        wait_for_report();
    }
    errno = saved;
    os_hand_on(number, info, context, &before[which]);
}

void crash_begin_report(void)
{
    if (!begin())
        wait_for_report();
}

void crash_end_report(void)
{
    store_relaxed(&reported, 1u);
}

/* After the line of a fatal error of our own; abort follows. */
static void after_fatal(void)
{
    struct os_frame frame = os_frame_here();
    if (!begin()) {
        wait_for_report();
        return;
    }
    stack_write_from(&frame, UNWIND_BROKEN);
    write_rest();
    store_relaxed(&reported, 1u);
}

void crash_forked(void)
{
    store_relaxed(&reporting, 0);
    store_relaxed(&reported, 0u);
}

void crash_start(void)
{
    static uint32_t started;
    if (exchange_acquire(&started, 1u) != 0)
        return; /* before[] has what was there before the first time */
    fail_also = after_fatal;
    for (unsigned i = 0; i < SIGNALS; i++)
        os_set_handler(signals[i].number, handle, &before[i]);
}
