/*
 * Signal handlers that interrupt a hot function.
 *
 * A hot function reads the top of a magazine and writes it some instructions later. A handler that allocates
 * in between, and leaves the magazine otherwise than it found it, would have the interrupted function undo
 * that. So while such a handler runs, its thread is shown a closed heap: its operations come to the door, and
 * the door leaves this heap's magazines alone (magazine.c), taking and putting back single blocks instead.
 *
 * Handlers that interrupt anything else need nothing of this: the door expects them (door.c, magazine.c).
 */
#ifndef HAK_HEAP_INTERRUPT_H
#define HAK_HEAP_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "heap/heap.h"

/* What to go back to when the handler returns. */
struct interruption {
    struct heap *heap; /* NULL: nothing was done */
    struct interrupt_state before;
};

/* Closes the calling thread's heap for a handler whose frame is at `frame`, and opens it again. Another handler may
 * interrupt both, if it does the same: all that it changes is as before when it returns. */
struct interruption interrupt_begin(uintptr_t frame, struct handler_stack stack);
void interrupt_end(struct interruption interruption);

/* Are the heap's magazines in the hands of an interrupted hot function? */
ALWAYS_INLINE bool interrupt_holds_magazines(const struct heap *heap)
{
    return UNLIKELY(heap->interrupt.depth != 0);
}

/* The same, asked by the owner inside its door; notices a handler that was left by siglongjmp. */
bool interrupt_lasts(struct heap *heap);

#endif
