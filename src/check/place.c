#include "check/place.h"

#include "base/fail.h"
#include "check/stack_text.h"
#include "os/frame.h"

const char *place_access(const void *context)
{
    static const char names[][8] = {
        [OS_ACCESS_UNKNOWN] = "access",
        [OS_ACCESS_READ] = "READ",
        [OS_ACCESS_WRITE] = "WRITE",
        [OS_ACCESS_EXECUTE] = "EXECUTE",
    };
    return names[os_access(context)];
}

static void write_event(const char *what, const struct place_event *event)
{
    note("%s by thread %d%s", what, event->thread, event->count > 0 ? " here:" : " (no stack was taken)");
    stack_write(event->calls, event->count);
}

void place_write(uintptr_t address, uintptr_t start, uintptr_t end, const struct place_event *allocated,
                 const struct place_event *freed)
{
    const char *where = "inside of";
    size_t distance = address - start;
    if (address < start) {
        where = "before";
        distance = start - address;
    } else if (address >= end) {
        where = "after";
        distance = address - end;
    }
    note("%p is located %zu bytes %s %zu-byte region [%p,%p)", (void *)address, distance, where, end - start, (void *)start,
         (void *)end);
    if (freed->thread != 0)
        write_event("freed", freed);
    write_event(freed->thread != 0 ? "previously allocated" : "allocated", allocated);
}
