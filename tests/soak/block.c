#include "block.h"

#include "content.h"
#include "family.h"
#include "random.h"
#include "where.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_bool may_fail;
static atomic_size_t refusals;

void block_may_fail(bool may)
{
    atomic_store(&may_fail, may);
}

bool block_failure_allowed(void)
{
    return atomic_load(&may_fail);
}

size_t block_refusals(void)
{
    return atomic_exchange(&refusals, 0);
}

/* What malloc owes: 16 from 16 bytes on; below that no more than the size asks for. */
static size_t natural_alignment(size_t size)
{
    return size >= 16 ? 16 : size >= 8 ? 8 : 1;
}

static void *aligned(size_t alignment, size_t size, uint64_t *random)
{
    void *at = NULL;
    switch (random_below(random, 3)) {
    case 0:
        return family.memalign(alignment, size);
    case 1:
        return family.aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    default:
        errno = family.posix_memalign(&at, alignment < sizeof(void *) ? sizeof(void *) : alignment, size);
        return at;
    }
}

static void *request(enum block_source source, size_t size, size_t alignment, uint64_t *random)
{
    switch (source) {
    case BLOCK_CALLOC:
        return size % 8 == 0 ? family.calloc(size / 8, 8) : family.calloc(1, size);
    case BLOCK_REALLOC:
        return family.realloc(NULL, size);
    case BLOCK_ALIGNED:
        return aligned(alignment, size, random);
    default:
        return family.malloc(size);
    }
}

static void check_refusal(const struct block *block, const char *function)
{
    const int reason = errno;
    if (!block_failure_allowed() || reason != ENOMEM) {
        failed(block, "%s gave NULL, errno %d", function, reason);
    }
    atomic_fetch_add(&refusals, 1);
}

static void check_place(const struct block *block)
{
    if ((uintptr_t)block->at % block->alignment != 0) {
        failed(block, "the block is not aligned");
    }
    const size_t usable = family.usable_size(block->at);
    if (usable < block->size) {
        failed(block, "the usable size is %zu", usable);
    }
}

bool block_make(struct block *block, enum block_source source, size_t size, size_t alignment, uint64_t *random)
{
    static const char *const names[] = {"malloc", "calloc", "realloc", "aligned allocation"};
    *block = (struct block){
        .size = size,
        .alignment = source == BLOCK_ALIGNED ? alignment : natural_alignment(size),
        .seed = random_next(random),
    };
    block->at = request(source, size, alignment, random);
    if (block->at == NULL) {
        check_refusal(block, names[source]);
        return false;
    }
    check_place(block);
    if (source == BLOCK_CALLOC) {
        const size_t wrong = content_not_zero(block->at, size, block->seed);
        if (wrong != CONTENT_RIGHT) {
            failed(block, "byte %zu from calloc is not zero but %#x", wrong, block->at[wrong]);
        }
    } else if (random_below(random, 16) == 0) {
        block->size = family.usable_size(block->at); /* all of it may be used */
    }
    content_fill(block->at, block->size, 0, block->seed);
    return true;
}

/* `upto`: how much of it still has to be as it was. */
static void check_content(const struct block *block, size_t upto, const char *when)
{
    const size_t wrong = content_wrong(block->at, block->size, upto, block->seed);
    if (wrong != CONTENT_RIGHT) {
        failed(block, "byte %zu has changed to %#x, noticed %s", wrong, block->at[wrong], when);
    }
}

void block_check(const struct block *block)
{
    check_content(block, block->size, "while it is live");
}

bool block_resize(struct block *block, size_t size, uint64_t *random)
{
    const bool as_array = size % 16 == 0 && random_below(random, 4) == 0;
    unsigned char *at = as_array ? family.reallocarray(block->at, size / 16, 16) : family.realloc(block->at, size);
    if (at == NULL) {
        check_refusal(block, "realloc");
        check_content(block, block->size, "after a realloc that failed");
        return false;
    }
    const size_t old = block->size;
    block->at = at;
    check_content(block, size < old ? size : old, "after realloc");
    block->size = size;
    block->alignment = natural_alignment(size);
    check_place(block);
    content_fill(at, size, content_refill_from(old, size), block->seed);
    return true;
}

void block_free(struct block *block)
{
    check_content(block, block->size, "at free");
    family.free(block->at);
    block->at = NULL;
}
