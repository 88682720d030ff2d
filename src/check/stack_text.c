#include "check/stack_text.h"

#include "base/fail.h"
#include "observe/unwind.h"

enum { CALLS_MOST = 64 };

static void write_call(unsigned number, uintptr_t call)
{
    struct os_module module;
    if (!os_find_module(call, &module))
        note("    #%u %p", number, (void *)call);
    else
        note("    #%u %p (%s+%p)", number, (void *)call, module.path, (void *)(call - module.base));
}

/* How many calls at the top, beyond the first, are of the library itself. Of a program that holds it in itself nothing tells
 * which they are. */
static size_t own_calls(const uintptr_t *calls, size_t count)
{
    struct os_module own;
    struct os_module module;
    size_t first = 0;
    if (!os_find_module((uintptr_t)stack_write, &own) || own.is_program)
        return 0;
    while (first + 1 < count && os_find_module(calls[first + 1], &module) && module.base == own.base)
        first++;
    return first;
}

void stack_write(const uintptr_t *calls, size_t count)
{
    size_t first = own_calls(calls, count);
    for (size_t i = first; i < count; i++)
        write_call((unsigned)(i - first), calls[i]);
}

void stack_write_from(const struct os_frame *from)
{
    uintptr_t calls[CALLS_MOST];
    stack_write(calls, unwind(from, UNWIND_BROKEN, calls, CALLS_MOST));
}
