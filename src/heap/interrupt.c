#include "heap/interrupt.h"

#include "base/atomic.h"
#include "heap/entry.h"
#include "heap/freeze.h"
#include "heap/view.h"

static FRAGILE bool is_on(const struct handler_stack *stack, uintptr_t address)
{
    return address - stack->low < stack->high - stack->low;
}

/* Stacks grow down: what runs above the handler's frame, or not on its stack, runs after it was left; what runs on the signal stack
 * while the handler does not is a handler that has interrupted it. A handler that goes on on a third stack, a coroutine's, is taken
 * for left if that lies above. */
static FRAGILE bool was_left(const struct interrupt_state *state, uintptr_t here)
{
    bool was_on = is_on(&state->stack, state->frame);
    if (was_on != is_on(&state->stack, here))
        return was_on;
    return here > state->frame;
}

bool interrupt_lasts(struct heap *heap)
{
    if (heap->interrupt.depth != 0 && was_left(&heap->interrupt, (uintptr_t)__builtin_frame_address(0)))
        heap->interrupt.depth = 0;
    return heap->interrupt.depth != 0;
}

FRAGILE struct interruption interrupt_begin(uintptr_t frame, struct handler_stack stack)
{
    struct heap *heap = view_load()->heap;
    if (heap == NULL)
        return (struct interruption){0};
    struct interruption interruption = {heap, heap->interrupt};
    if (heap->interrupt.depth == 0 || was_left(&heap->interrupt, frame))
        heap->interrupt = (struct interrupt_state){1, frame, stack};
    else
        heap->interrupt.depth++;
    compiler_fence();
    freeze_show_twin(heap);
    compiler_fence();
    return interruption;
}

/* Opens the heap, unless somebody has frozen it: then the owner's next operation does. Frozen is looked at after the exchange,
 * both in the one order that all threads see: a thief that has shown the twin before has set frozen before, and is seen here;
 * one that does so later has the last word. A handler that interrupted the door in the handler before it finds in_door set
 * already. */
static FRAGILE void show_own_view(struct heap *heap)
{
    uint32_t in_door = heap->in_door;
    store_relaxed(&heap->in_door, 1u);
    compiler_fence();
    (void)__atomic_exchange_n(&thread_view, freeze_view(heap), __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&heap->frozen, __ATOMIC_SEQ_CST) != FREEZE_NONE)
        store_relaxed(&thread_view, &heap->twin);
    compiler_fence();
    store_release(&heap->in_door, in_door);
}

FRAGILE void interrupt_end(struct interruption interruption)
{
    struct heap *heap = interruption.heap;
    if (heap == NULL)
        return;
    heap->interrupt = interruption.before;
    compiler_fence();
    if (interruption.before.depth == 0)
        show_own_view(heap);
}
