#include "check/guard_report.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fail.h"
#include "check/crash.h"
#include "check/place.h"
#include "check/stack_text.h"
#include "os/frame.h"
#include "os/handler.h"
#include "os/os.h"

static const char fault_kinds[][37] = {
    [GUARD_BAD_POINTER] = "invalid-free",
    [GUARD_DOUBLE_FREE] = "double-free",
    [GUARD_USE_AFTER_FREE] = "heap-use-after-free",
    [GUARD_WRITTEN_BEYOND] = "heap-buffer-overflow, found by free,",
    [GUARD_WRONG_SIZE] = "new-delete-type-mismatch",
};

/* The program may go on after a fault: its handler knows how. One report is enough. */
enum { REPORT_NONE, REPORT_BEGUN, REPORT_WRITTEN };
static uint32_t report_state;

static struct place_event event_of(const struct guard_event *event)
{
    return (struct place_event){.thread = event->count > 0 ? event->thread : 0, .calls = event->calls, .count = event->count};
}

static void write_place(uintptr_t address, const struct guard_slot *slot)
{
    struct place_event allocated = event_of(&slot->allocated);
    struct place_event freed = event_of(&slot->freed);
    uintptr_t start = (uintptr_t)slot->block;
    place_write(address, start, start + slot->size, &allocated, &freed);
}

static void write_report(const char *kind, const char *access, uintptr_t address, const struct guard_slot *slot,
                         const struct os_frame *frame)
{
    note("==%d==ERROR: hakmem: %s on address %p (%s, thread %d)", (int)getpid(), kind, (void *)address, access,
         os_thread_id());
    stack_write_from(frame, UNWIND_BROKEN);
    if (slot != NULL)
        write_place(address, slot);
}

_Noreturn void guard_report_pointer(enum guard_fault fault, uintptr_t address, struct guard_place place)
{
    struct os_frame here = os_frame_here();
    crash_begin_report();
    write_report(fault_kinds[fault], "free or realloc", address, place.slot, &here);
    crash_end_report();
    abort();
}

static const char closed_page[] = "closed-page";

/* A live block can be touched: who may not has jumped into it, or closed its page. */
static const char *kind_of(uintptr_t address, struct guard_place place, const void *context)
{
    bool is_live = load_acquire(&place.slot->state) == GUARD_LIVE;
    if (place.inside && is_live)
        return os_access(context) == OS_ACCESS_EXECUTE ? "wild-jump" : closed_page;
    if (place.inside)
        return "heap-use-after-free";
    return address < (uintptr_t)place.slot->block ? "heap-buffer-underflow" : "heap-buffer-overflow";
}

/* Where nobody wraps the program's handlers. */
static struct sigaction before;

static bool is_handled(int number)
{
    struct sigaction now;
    if (os_call_first == NULL)
        return os_has_handler(&before);
    return sigaction(number, NULL, &now) == 0 && os_has_handler(&now);
}

/* Has the program closed the page of a live block itself, to learn of the touch? */
static bool is_wanted(const char *kind, int number)
{
    return kind == closed_page && is_handled(number);
}

/* Of another fault nothing is done, not even errno looked at: it may be one of those that Wine's handlers begin by putting the
 * thread pointer right. */
static void report(int number, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    struct guard_place place;
    uint32_t none = REPORT_NONE;
    bool is_guarded = info->si_code > 0 && guard_find(address, &place) && place.slot != NULL;
    if (!is_guarded && load_relaxed(&report_state) != REPORT_BEGUN)
        return;
    int saved = errno;
    const char *kind = is_guarded ? kind_of(address, place, context) : NULL;
    if (is_guarded && !is_wanted(kind, number)
        && __atomic_compare_exchange_n(&report_state, &none, (uint32_t)REPORT_BEGUN, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        struct os_frame frame = os_frame_interrupted(context);
        write_report(kind, place_access(context), address, place.slot, &frame);
        store_relaxed(&report_state, (uint32_t)REPORT_WRITTEN);
    } else {
        crash_wait_while(&report_state, REPORT_BEGUN, REPORT_WRITTEN);
    }
    errno = saved;
}

static void report_and_hand_on(int number, siginfo_t *info, void *context)
{
    report(number, info, context);
    os_hand_on(number, info, context, &before);
}

void guard_report_forked(void)
{
    store_relaxed(&report_state, (uint32_t)REPORT_NONE);
}

/* In the midst of a request that will be served, whatever comes of this. */
void guard_report_start(void)
{
    int saved = errno;
    if (os_call_first != NULL)
        os_call_first(SIGSEGV, report);
    else
        os_set_handler(SIGSEGV, report_and_hand_on, &before);
    errno = saved;
}
