#include "large/fenced.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/zero.h"
#include "config/size_class.h"
#include "os/os.h"

/* Each costs the process two of the 65,530 mappings that it may have. */
enum { FENCES_MOST = 8192 };

/* To close a freed block and open it again takes longer than to clear and verify one below this, in a program of several
 * threads, all of which the kernel must interrupt. */
#define CLOSED_LEAST (128 * KIB)

static size_t fences;

static size_t memory_bytes(const struct large *block)
{
    return block->units << UNIT_SHIFT;
}

static size_t end_of_page(size_t bytes)
{
    return align_up(max_size(bytes, 1), os_page_size());
}

/* False: there are enough. */
static bool count_fence(void)
{
    if (add_relaxed(&fences, (size_t)1) < FENCES_MOST)
        return true;
    sub_relaxed(&fences, (size_t)1);
    return false;
}

static bool is_fenced(const struct large *block)
{
    return block->reach != 0 && block->reach < memory_bytes(block);
}

static void set_reach(struct large *block, size_t reach)
{
    bool was_fenced = is_fenced(block);
    block->reach = reach;
    if (was_fenced && !is_fenced(block))
        sub_relaxed(&fences, (size_t)1);
}

/* All of it is usable. */
static size_t close_behind(const struct large *block)
{
    size_t end = end_of_page(block->bytes);
    size_t all = memory_bytes(block);
    if (!count_fence())
        return all;
    if (os_close(block->base + end, all - end))
        return end;
    sub_relaxed(&fences, (size_t)1);
    return all;
}

void fenced_begin(struct large *block, bool zero)
{
    block->reach = close_behind(block);
    if (!zero)
        memset(block->base, 0, block->reach);
}

static void verify(const struct large *block, bool reads_as_zero)
{
    if (!reads_as_zero)
        fail("write after free of %p (large, thread %d)", (void *)block->base, os_thread_id());
}

static bool pages_are_clear(void *pages, size_t bytes)
{
    return is_zero(pages, bytes);
}

/* Closed pages are looked at, too: while they were cleared, before that, another thread may have written. */
static bool open_up_to(struct large *block, size_t end)
{
    char *closed = block->base + block->reach;
    size_t bytes = end - block->reach;
    if (!os_commit(closed, bytes))
        return false;
    block->reach = end;
    verify(block, os_each_present(closed, bytes, pages_are_clear));
    return true;
}

static bool open_again(struct large *block)
{
    bool fenced = count_fence();
    if (open_up_to(block, fenced ? end_of_page(block->bytes) : memory_bytes(block)))
        return true;
    if (fenced)
        sub_relaxed(&fences, (size_t)1);
    return false;
}

bool fenced_lend(struct large *block)
{
    if (block->reach == 0)
        return open_again(block);
    verify(block, is_zero(block->base, block->reach));
    size_t end = end_of_page(block->bytes);
    return end <= block->reach || open_up_to(block, end);
}

bool fenced_is_overrun(const struct large *block)
{
    return !is_zero(block->base + block->bytes, block->reach - block->bytes);
}

bool fenced_resize(struct large *block, size_t bytes)
{
    if (bytes > block->reach || end_of_page(bytes) < block->reach - block->reach / 4)
        return false;
    if (bytes < block->bytes)
        memset(block->base + bytes, 0, block->bytes - bytes);
    block->bytes = bytes;
    return true;
}

/* Nothing may touch it, and it reads as zero. False: it is as it was. */
static bool close_kept(struct large *block)
{
    return block->reach >= CLOSED_LEAST && os_forbid(block->base, memory_bytes(block));
}

void fenced_close(struct large *block, bool kept)
{
    size_t all = memory_bytes(block);
    if (kept || !os_purge(block->base, all)) /* locked memory keeps its pages; what is closed cannot be cleared, and is zero */
        os_clear(block->base, end_of_page(block->bytes));
    if (kept ? close_kept(block) : os_forbid(block->base, all))
        set_reach(block, 0);
}

size_t fenced_end(struct large *block, bool *zero)
{
    size_t all = memory_bytes(block);
    size_t reach = block->reach;
    *zero = os_purge(block->base, all);
    set_reach(block, 0);
    return reach == all || os_commit(block->base, all) ? all : align_down(reach, UNIT_SIZE);
}
