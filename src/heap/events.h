/* What the layers beside the stack may ask to be told. The heap calls these behind the door; api fills the
 * table, once, before the first heap is born. NULL: nobody wants to know. */
#ifndef HAK_HEAP_EVENTS_H
#define HAK_HEAP_EVENTS_H

#include "base/compiler.h"
#include "heap/heap.h"

struct heap_events {
    /* A thread has requested another policy.heartbeat_bytes. Inside its door. */
    void (*heartbeat)(struct heap *heap);
};

extern HIDDEN struct heap_events heap_events;

#endif
