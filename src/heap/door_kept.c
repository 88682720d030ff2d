/* The door's way while somebody keeps the blocks in place of the heaps (keeper.h). */
#include "heap/door.h"

#include <errno.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "heap/door_steps.h"
#include "heap/entry.h"
#include "heap/fork.h"
#include "heap/keeper.h"
#include "heap/relief.h"
#include "heap/view.h"
#include "span/limit.h"

void *door_ask_keeper(const struct keeper *keeper, const struct request *request, struct os_frame from)
{
    bool charged = request->size <= SMALL_MAX && request->align == 1 && !view_is(VIEW_UNBORN);
    struct heap *heap = door_enter();
    void *block = NULL;
    if (heap != NULL || (load_acquire(&arena.base) != NULL && !fork_holds_any_lock())) {
        block = keeper->allocate(request, &from);
        if (block == NULL && request->size <= PTRDIFF_MAX && relief_for(heap, request->size))
            block = keeper->allocate(request, &from);
    }
    if (heap != NULL) {
        if (!charged && block != NULL)
            door_charge(heap, request->size);
        relief_note(heap);
        door_leave(heap);
    }
    if (block == NULL)
        errno = ENOMEM;
    /* cppcheck-suppress returnDanglingLifetime ; a block of the keeper's, not the frame that it was told */
    return block;
}

void *door_malloc_kept(size_t size, size_t align, enum family family)
{
    return door_ask_keeper(keeper_now(), &(struct request){.size = size, .align = align, .family = family}, os_frame_linked());
}

void *door_calloc_kept(size_t size)
{
    return door_ask_keeper(keeper_now(), &(struct request){.size = size, .align = 1, .family = FAMILY_MALLOC, .zeroed = true},
                       os_frame_linked());
}

bool door_resize_kept(void *p, size_t before, size_t size)
{
    struct heap *heap = door_enter();
    if (heap == NULL && fork_holds_any_lock())
        return false;
    bool resized = keeper_now()->resize(p, size);
    if (heap != NULL) {
        if (resized && size > before)
            door_charge(heap, size - before);
        entry_leave(heap);
    }
    return resized;
}
