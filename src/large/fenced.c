#include "large/fenced.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/zero.h"
#include "config/size_class.h"
#include "os/os.h"

/* Each costs the process two of the 65,530 mappings that it may have. */
enum { FENCES_MOST = 8192 };

static size_t fences;

static size_t memory_bytes(const struct large *block)
{
    return block->units << UNIT_SHIFT;
}

static size_t end_of_page(size_t bytes)
{
    return align_up(max_size(bytes, 1), os_page_size());
}

static bool close_behind(const struct large *block)
{
    size_t used = end_of_page(block->bytes);
    if (add_relaxed(&fences, (size_t)1) < FENCES_MOST && os_close(block->base + used, memory_bytes(block) - used))
        return true;
    sub_relaxed(&fences, (size_t)1);
    return false;
}

void fenced_begin(struct large *block, bool zero)
{
    if (!zero)
        memset(block->base, 0, end_of_page(block->bytes));
    block->fenced = close_behind(block);
}

bool fenced_is_overrun(const struct large *block)
{
    return !is_zero(block->base + block->bytes, end_of_page(block->bytes) - block->bytes);
}

bool fenced_resize(struct large *block, size_t bytes)
{
    if (end_of_page(bytes) != end_of_page(block->bytes))
        return false;
    if (bytes < block->bytes)
        memset(block->base + bytes, 0, block->bytes - bytes);
    block->bytes = bytes;
    return true;
}

void fenced_close(struct large *block)
{
    block->closed = os_close(block->base, memory_bytes(block));
}

bool fenced_end(struct large *block, bool *zero)
{
    *zero = block->closed;
    if (block->fenced)
        sub_relaxed(&fences, (size_t)1);
    return !(block->fenced || block->closed) || os_commit(block->base, memory_bytes(block));
}
