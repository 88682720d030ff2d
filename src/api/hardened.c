/* The hot functions of the hardened library: seals, zeroing and delay around the push and pop of the others. */
#include "api/hot.h"
#include "heap/delay.h"
#include "heap/keeper.h"
#include "heap/report.h"
#include "heap/seal.h"

/* Keepers and guarded samples have seals of their own kind, large blocks a closed page. */
FRAGILE void *hardened_malloc(size_t size, void *(*door)(size_t))
{
    if (UNLIKELY(keeper_now() != NULL))
        return hot_pop(size, door);
    if (UNLIKELY(size > SEALED_MAX)) {
        bool zero;
        return door_malloc_large(size, 1, &zero);
    }
    void *block = hot_pop(size + SEAL_BYTES, door);
    uintptr_t tag = arena_tag(block);
    if (LIKELY(tag >= TAG_KINDS))
        seal_live(block, tag % SIZE_CLASSES, size);
    return block;
}

/* To the magazine goes the block that waited longer. */
static FRAGILE void free_later(void *block, unsigned class)
{
    struct heap *heap = view_load()->heap;
    if (heap != NULL)
        block = delay_exchange(heap, class, block);
    if (block != NULL && UNLIKELY(!hot_push(block)))
        door_free(block);
}

FRAGILE bool hardened_free(void *block, size_t size)
{
    uintptr_t tag = arena_tag(block);
    unsigned class = tag % SIZE_CLASSES;
    if (UNLIKELY(tag < TAG_KINDS || keeper_now() != NULL))
        return false;
    size_t asked = seal_size(block, class, FAULT_DOUBLE_FREE);
    if (UNLIKELY(size != SIZE_UNKNOWN && size != asked))
        report_pointer(FAULT_OTHER_SIZE, block);
    seal_free(block, class, asked);
    free_later(block, class);
    return true;
}
