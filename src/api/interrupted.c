#include "api/interrupted.h"

#include <ucontext.h>

#include "base/atomic.h"
#include "os/os.h"

/* The linker's names for the ends of the section FRAGILE. */
extern const char __start_hak_fragile[] HIDDEN;
extern const char __stop_hak_fragile[] HIDDEN;

/* The few instructions, in libc or the vDSO, by which a handler returns to the kernel. */
enum { RETURN_BYTES = 16 };
static uintptr_t handler_return;

static FRAGILE bool is_fragile(uintptr_t address)
{
    uintptr_t start = (uintptr_t)__start_hak_fragile;
    return address - start < (uintptr_t)__stop_hak_fragile - start
           || address - load_relaxed(&handler_return) < RETURN_BYTES;
}

static FRAGILE struct handler_stack own_stack(const ucontext_t *context)
{
    uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
    return (struct handler_stack){low, low + context->uc_stack.ss_size};
}

FRAGILE struct interruption interrupted_begin(const void *context, const void *returns_to)
{
    store_relaxed(&handler_return, (uintptr_t)returns_to);
    if (!is_fragile(os_interrupted_at(context)))
        return (struct interruption){0};
    return interrupt_begin((uintptr_t)__builtin_frame_address(0), own_stack(context));
}

FRAGILE void interrupted_end(struct interruption interruption)
{
    interrupt_end(interruption);
}
