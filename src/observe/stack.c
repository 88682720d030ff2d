#include "observe/stack.h"

#include <string.h>

#include "base/atomic.h"
#include "base/shard.h"
#include "base/thread.h"

enum { MEMOS = 64 };

/* Who finds its own in use, by another thread or by itself below a signal handler, does without. */
static struct memo {
    uint32_t busy;
    struct unwind_memo calls;
} ALIGNED(SHARD_ALIGN) memos[MEMOS];

static struct memo *own_memo(void)
{
    return &memos[shard_spread(thread_self(), MEMOS)];
}

size_t stack_take(const struct os_frame *from, uintptr_t *calls, size_t most)
{
    struct memo *memo = own_memo();
    if (exchange_acquire(&memo->busy, 1u) != 0)
        return unwind(from, UNWIND_SOUND, calls, most);
    size_t count = unwind_again(from, &memo->calls, calls, most);
    store_release(&memo->busy, 0u);
    return count;
}

void stack_forget(void)
{
    for (struct memo *memo = memos; memo < memos + MEMOS; memo++) {
        if (load_relaxed(&memo->calls.sure_at) == 0 || exchange_acquire(&memo->busy, 1u) != 0) /* never used; or in use */
            continue;
        memset(&memo->calls, 0, sizeof memo->calls);
        store_release(&memo->busy, 0u);
    }
}

/* Its own may be in use below the signal handler that has forked. */
void stack_forked(void)
{
    const struct memo *own = own_memo();
    for (struct memo *memo = memos; memo < memos + MEMOS; memo++)
        if (memo != own)
            store_relaxed(&memo->busy, 0u);
    stack_forget();
}

/* The linker's names for the ends of the sections FRAGILE, malloc and its kin, and ENTRANCE. */
extern const char __start_hak_fragile[] HIDDEN;
extern const char __stop_hak_fragile[] HIDDEN;
extern const char __start_hak_entrance[] HIDDEN;
extern const char __stop_hak_entrance[] HIDDEN;

struct range {
    uintptr_t start;
    uintptr_t bytes;
};

static bool is_in(const struct range *range, uintptr_t call)
{
    return call - range->start < range->bytes;
}

static struct range between(const char *start, const char *stop)
{
    return (struct range){(uintptr_t)start, (uintptr_t)stop - (uintptr_t)start};
}

bool stack_own_module(struct os_module *own)
{
    static const char name[] = "libhakmem";
    if (!os_find_module((uintptr_t)stack_own_calls, own) || own->is_program)
        return false;
    const char *slash = strrchr(own->path, '/');
    return strncmp(slash != NULL ? slash + 1 : own->path, name, sizeof name - 1) == 0;
}

static struct range library(void)
{
    struct os_module own;
    if (!stack_own_module(&own))
        return (struct range){0};
    return (struct range){own.start, own.end - own.start};
}

/* Where the library is stays the same: threads that find out at once write the same. */
static struct range own_range(void)
{
    static struct range found;
    static uint32_t known;
    if (load_acquire(&known) == 0) {
        struct range range = library();
        store_relaxed(&found.start, range.start);
        store_relaxed(&found.bytes, range.bytes);
        store_release(&known, 1u);
    }
    return (struct range){load_relaxed(&found.start), load_relaxed(&found.bytes)};
}

size_t stack_own_calls(const uintptr_t *calls, size_t count)
{
    struct range own = own_range();
    struct range hot = between(__start_hak_fragile, __stop_hak_fragile);
    struct range door = between(__start_hak_entrance, __stop_hak_entrance);
    size_t first = count > 0; /* the function that says from where */
    while (first < count && (is_in(&own, calls[first] - 1) || is_in(&hot, calls[first] - 1) || is_in(&door, calls[first] - 1)))
        first++;
    return first;
}
