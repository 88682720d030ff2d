#include "heap/report.h"

#include "arena/arena.h"
#include "base/fail.h"
#include "heap/keeper.h"
#include "large/large.h"
#include "os/os.h"

/* The tag of the unit that holds p, aligned or not. */
static uintptr_t tag_of_any(const void *p)
{
    return arena_tag((const void *)align_down((uintptr_t)p, 8));
}

_Noreturn void report_pointer(const char *fault, const void *p)
{
    if (keeper_now() != NULL)
        keeper_now()->refuse(fault, p);
    uintptr_t tag = tag_of_any(p);
    const void *span = tag != TAG_NONE ? arena_span(p) : NULL; /* NULL where another thread is just giving it up */
    int thread = os_thread_id();
    if (tag >= TAG_KINDS)
        fail("%s of %p (class %u B, thread %d)", fault, p, size_class_bytes(tag % SIZE_CLASSES), thread);
    if (tag == TAG_SAMPLED && span != NULL) {
        const struct slab *slab = span;
        fail("%s of %p (class %u B, thread %d)", fault, p, slab->stride, thread);
    }
    if ((tag == TAG_LARGE || tag == TAG_LARGE_KEPT) && span != NULL) {
        const struct large *block = span;
        fail("%s of %p (large, %zu B, thread %d)", fault, p, block->bytes, thread);
    }
    if (tag == TAG_LARGE || tag == TAG_LARGE_KEPT || tag == TAG_LARGE_GONE)
        fail("%s of %p (large, thread %d)", fault, p, thread);
    fail("%s of %p (thread %d)", fault, p, thread);
}

_Noreturn void report_refused(enum slab_verdict verdict, const void *p)
{
    report_pointer(verdict == SLAB_DOUBLE_FREE ? FAULT_DOUBLE_FREE : FAULT_INVALID_FREE, p);
}
