#include "check/stack_text.h"

#include "base/fail.h"
#include "base/fmt.h"
#include "observe/stack.h"
#include "observe/unwind.h"

enum { CALLS_MOST = 64, WORDS_MOST = 48 };

static void write_call(unsigned number, uintptr_t call)
{
    struct os_module module;
    char before[WORDS_MOST];
    char after[WORDS_MOST];
    if (!os_find_module(call, &module)) {
        note("    #%u %p", number, (void *)call);
        return;
    }
    (void)fmt_print(before, sizeof before, "    #%u %p (", number, (void *)call);
    (void)fmt_print(after, sizeof after, "+%p)", (void *)(call - module.base));
    note_joined(before, module.path, after);
}

/* All but the first are return addresses, and the call before one may be the last instruction of its function. */
static uintptr_t call_at(const uintptr_t *calls, size_t i)
{
    return calls[i] - (i > 0);
}

static void write_calls(const uintptr_t *calls, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++)
        write_call((unsigned)(i - first), call_at(calls, i));
}

/* How many calls at the top are of the library itself, wherever the stack begins; none, if all are, or if it is part of something else:
 * nothing tells which they are. */
static size_t own_calls(const uintptr_t *calls, size_t count)
{
    struct os_module own;
    struct os_module module;
    size_t first = 0;
    if (!stack_own_module(&own))
        return 0;
    while (first < count && os_find_module(call_at(calls, first), &module) && module.base == own.base)
        first++;
    return first < count ? first : 0;
}

uintptr_t stack_caller(const uintptr_t *calls, size_t count)
{
    struct os_module module;
    size_t first = stack_own_calls(calls, count);
    /* Of a program that lies where its file says the base is 0. */
    return first < count && os_find_module(call_at(calls, first), &module) ? module.base | 1 : 0;
}

void stack_write(const uintptr_t *calls, size_t count)
{
    write_calls(calls, own_calls(calls, count), count);
}

void stack_write_from(const struct os_frame *from, enum unwind_trust trust)
{
    uintptr_t calls[CALLS_MOST];
    size_t count = unwind(from, trust, calls, CALLS_MOST);
    stack_write(calls, count);
}

void stack_write_whole(const struct os_frame *from)
{
    uintptr_t calls[CALLS_MOST];
    size_t count = unwind(from, UNWIND_BROKEN, calls, CALLS_MOST);
    write_calls(calls, 0, count);
}
