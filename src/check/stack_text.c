#include "check/stack_text.h"

#include <stdbool.h>

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

/* In the library; of a program that holds it in itself nothing tells. */
static bool is_ours(uintptr_t address)
{
    struct os_module here;
    struct os_module there;
    return os_find_module((uintptr_t)stack_write, &here) && !here.is_program && os_find_module(address, &there)
           && here.base == there.base;
}

void stack_write(const uintptr_t *calls, size_t count)
{
    size_t first = 0;
    while (first + 1 < count && is_ours(calls[first + 1]))
        first++;
    for (size_t i = first; i < count; i++)
        write_call((unsigned)(i - first), calls[i]);
}

void stack_write_from(const struct os_frame *from)
{
    uintptr_t calls[CALLS_MOST];
    stack_write(calls, unwind(from, UNWIND_BROKEN, calls, CALLS_MOST));
}
