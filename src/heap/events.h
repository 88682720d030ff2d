/* What the layers beside the stack may ask to be told. The heap calls these behind the door; api fills the
 * table, once, before the first heap is born. NULL: nobody wants to know. */
#ifndef HAK_HEAP_EVENTS_H
#define HAK_HEAP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "heap/heap.h"

struct heap_events {
    /* A thread has requested another policy.heartbeat_bytes. Inside its door. */
    void (*heartbeat)(struct heap *heap);

    /* A request of a small block that is why the next heartbeat is due: a block from elsewhere, or NULL: the heap's will do.
     * Inside the door. */
    void *(*sample)(struct heap *heap, size_t size);

    /* A small request found its magazine empty, and it was filled with so many blocks. Inside the door. Set at any time. */
    void (*refilled)(const struct heap *heap, size_t size, unsigned class, size_t blocks);

    /* Of a pointer that is not to a block of the heap's. False: nor of any other's. Any thread, at any moment. */
    bool (*free_other)(void *p);
    bool (*size_of_other)(const void *p, size_t *size);

    /* The door has been entered, and is about to be left after an operation on p, of `size` bytes if those are known. Inside it. */
    void (*entered)(struct heap *heap);
    void (*leaving)(struct heap *heap, const char *operation, const void *p, size_t size);

    /* A tool outside asks for something (control.h). Outside the door, by a thread that has just left it. */
    void (*asked)(void);
};

extern HIDDEN struct heap_events heap_events;

#endif
