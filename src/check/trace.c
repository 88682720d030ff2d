#include "check/trace.h"

#include <unistd.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/fail.h"
#include "check/stack_text.h"
#include "config/policy.h"
#include "os/os.h"

/* Nobody reads more. */
enum { EVENTS_MOST = 1000 };

static bool is_traced(const struct checked *block)
{
    uintptr_t start = (uintptr_t)checked_start(block);
    switch (policy.trace) {
    case TRACE_ADDRESS:
        return ~policy.traced - start < max_size(block->size, 1);
    case TRACE_OFFSET:
        return ~policy.traced + (uintptr_t)arena.base - start < max_size(block->size, 1);
    case TRACE_CLASS:
        return block->size <= SMALL_MAX && size_class_fixed(block->size) == size_class_fixed(policy.traced);
    case TRACE_ROUTE:
    case TRACE_NOTHING:
        break;
    }
    return false;
}

static void write_event(const struct checked *block, const char *what, const struct os_frame *from)
{
    static uint32_t events;
    if (!is_traced(block))
        return;
    uint32_t before = add_relaxed(&events, 1u);
    if (before > EVENTS_MOST)
        return;
    if (before == EVENTS_MOST) {
        note("==%d==TRACE: hakmem: no more than %d events are written", (int)getpid(), (int)EVENTS_MOST);
        return;
    }
    const char *start = checked_start(block);
    note("==%d==TRACE: hakmem: %s %p (heap+0x%zx), %zu bytes, thread %d", (int)getpid(), what, start,
         (size_t)(start - arena.base), block->size, os_thread_id());
    if (from != NULL)
        stack_write_from(from, UNWIND_SOUND);
}

void trace_allocated(const struct checked *block, const struct os_frame *from)
{
    write_event(block, "allocated", from);
}

void trace_freed(const struct checked *block, const struct os_frame *from)
{
    write_event(block, "freed", from);
}
