#include "check/checked_report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/fmt.h"
#include "check/crash.h"
#include "check/nearest.h"
#include "check/place.h"
#include "check/stack_text.h"
#include "check/zones.h"
#include "observe/depot.h"
#include "observe/unwind.h"
#include "os/os.h"

/* A program that mixes them does it all the time. */
enum { WARNINGS_MOST = 20, CALLS_MOST = 16 };

static const char allocators[][25] = {[FAMILY_MALLOC] = "malloc",
                                      [FAMILY_NEW] = "operator new",
                                      [FAMILY_NEW_ARRAY] = "operator new[]",
                                      [FAMILY_NEW_ALIGNED] = "operator new, aligned",
                                      [FAMILY_NEW_ARRAY_ALIGNED] = "operator new[], aligned"};

static const char releasers[][27] = {[FAMILY_MALLOC] = "free",
                                     [FAMILY_NEW] = "operator delete",
                                     [FAMILY_NEW_ARRAY] = "operator delete[]",
                                     [FAMILY_NEW_ALIGNED] = "operator delete, aligned",
                                     [FAMILY_NEW_ARRAY_ALIGNED] = "operator delete[], aligned"};

static struct place_event event_of(const struct checked_event *event)
{
    struct place_event place = {.thread = event->thread};
    place.calls = depot_get(event->stack, &place.count);
    return place;
}

static void write_block(uintptr_t address, const struct checked *block)
{
    if (block->allocated.thread == 0) {
        note("%p is in memory of the heap that was never handed out", (void *)address);
        return;
    }
    struct place_event allocated = event_of(&block->allocated);
    struct place_event freed = event_of(&block->freed);
    uintptr_t start = (uintptr_t)checked_start(block);
    place_write(address, start, start + block->size, &allocated, &freed);
    note("(HAKMEM_TRACE=ptr:heap+0x%zx shows all that happens to this place in a run that allocates the same)",
         (size_t)(start - (uintptr_t)arena.base));
}

/* `frame`: where the stack begins that is a part of it; NULL: there is none. */
static void write_head(const char *kind, const void *address, const char *how, const struct os_frame *frame)
{
    note("==%d==ERROR: hakmem: %s on address %p (%s, thread %d)", (int)getpid(), kind, address, how, os_thread_id());
    if (frame != NULL)
        stack_write_from(frame, UNWIND_BROKEN);
}

static _Noreturn void end(void)
{
    crash_end_report();
    abort();
}

_Noreturn void checked_report(const char *kind, uintptr_t address, const char *how, const struct checked *block)
{
    struct os_frame here = os_frame_here();
    crash_begin_report();
    write_head(kind, (void *)address, how, &here);
    write_block(address, block);
    end();
}

_Noreturn void checked_report_at_exit(const char *kind, uintptr_t address, const struct checked *block)
{
    crash_begin_report();
    write_head(kind, (void *)address, "found at the end of the program", NULL);
    write_block(address, block);
    end();
}

void checked_note_changed(const char *kind, uintptr_t address, const struct checked *block)
{
    note("hakmem: crash: before that, %s on address %p:", kind, (void *)address);
    write_block(address, block);
}

/* Where a pointer comes from that points nowhere; NULL: it is another. */
static const char *origin_of(uintptr_t value)
{
    if (zones_is_from_freed(value))
        return "freed memory: it was read from a block that had been freed";
    if (zones_is_from_new(value))
        return "new memory: it was read from a block before anything had been written there";
    return NULL;
}

_Noreturn void checked_report_stranger(const char *fault, const void *p)
{
    char where[160];
    char kind[32];
    struct os_frame here = os_frame_here();
    fmt_print(kind, sizeof kind, "%s", fault);
    for (char *space; (space = strchr(kind, ' ')) != NULL;)
        *space = '-';
    crash_begin_report();
    write_head(kind, p, "free or realloc", &here);
    nearest_describe((uintptr_t)p, where, sizeof where);
    note("%p is %s", p, where);
    const char *origin = origin_of((uintptr_t)p);
    if (origin != NULL)
        note("it is what check mode writes into %s", origin);
    end();
}

/* A library that has the C++ library within itself has operators of its own, which call malloc and free: its blocks look
 * mismatched where another deletes them. Nothing is said of what goes from one module to another. */
static bool is_within_module(const struct checked *block, const struct os_frame *from)
{
    uintptr_t calls[CALLS_MOST];
    struct place_event allocated = event_of(&block->allocated);
    uintptr_t allocator = stack_caller(allocated.calls, allocated.count);
    return allocator != 0 && allocator == stack_caller(calls, unwind(from, UNWIND_SOUND, calls, CALLS_MOST));
}

void checked_warn_of_family(const struct checked *block, const struct freeing *how)
{
    static uint32_t warnings;
    struct os_frame here = os_frame_here();
    if (!is_within_module(block, how->from != NULL ? how->from : &here))
        return;
    uint32_t before = add_relaxed(&warnings, 1u);
    if (before >= WARNINGS_MOST)
        return;
    uintptr_t start = (uintptr_t)checked_start(block);
    note("==%d==WARNING: hakmem: alloc-dealloc-mismatch (%s vs %s) on address %p (thread %d)", (int)getpid(),
         allocators[block->family], releasers[how->family], (void *)start, os_thread_id());
    stack_write_from(&here, UNWIND_SOUND); /* the program lives on: a sandbox may end it for what copies memory */
    write_block(start, block);
    if (before == WARNINGS_MOST - 1)
        note("==%d==WARNING: hakmem: further mismatches are not reported", (int)getpid());
}

_Noreturn void checked_report_size(const struct checked *block, size_t size)
{
    struct os_frame here = os_frame_here();
    uintptr_t start = (uintptr_t)checked_start(block);
    crash_begin_report();
    note("==%d==ERROR: hakmem: new-delete-type-mismatch on address %p (thread %d): %zu bytes were allocated, %zu are freed",
         (int)getpid(), (void *)start, os_thread_id(), block->size, size);
    stack_write_from(&here, UNWIND_BROKEN);
    write_block(start, block);
    end();
}

/* What a block's state says of an access to it. */
static const char *kind_of_access(uintptr_t address, const void *context, const struct checked *block)
{
    uintptr_t start = (uintptr_t)checked_start(block);
    if (block->state == CHECKED_FREED)
        return "heap-use-after-free";
    if (os_access(context) == OS_ACCESS_EXECUTE)
        return "wild-jump";
    if (address < start)
        return "heap-buffer-underflow";
    return address - start < block->size ? "closed-page" : "heap-buffer-overflow"; /* closed by the program itself */
}

/* Of an address that no pointer can have the processor says nothing (then it is 0 here), or not its uppermost bits. */
static bool may_have_led_to(uintptr_t pointer, uintptr_t address, const void *context)
{
    const size_t reach = 64 * KIB;
    uintptr_t beyond = (address - pointer + reach) << 8 >> 8;
    return (address == 0 && os_access(context) == OS_ACCESS_UNKNOWN) || beyond < 2 * reach;
}

bool checked_report_fault(uintptr_t address, const void *context)
{
    struct os_frame frame = os_frame_interrupted(context);
    union run_copy seen;
    const struct checked *block = run_look((const void *)address, &seen);
    if (block != NULL) {
        write_head(kind_of_access(address, context, block), (void *)address, place_access(context), &frame);
        write_block(address, block);
        return true;
    }
    uintptr_t registers[OS_REGISTERS];
    size_t count = os_registers(context, registers);
    for (size_t i = 0; i < count; i++) {
        const char *origin = origin_of(registers[i]);
        if (origin == NULL || !may_have_led_to(registers[i], address, context))
            continue;
        write_head("wild-pointer", (void *)registers[i], place_access(context), &frame);
        note("%p, in a register, is what check mode writes into %s", (void *)registers[i], origin);
        return true;
    }
    return false;
}
