/* What the layers beside the stack may ask to be told. The heap calls these behind the door; api fills the
 * table in its constructor, before which there may have been operations; `refilled` changes at any time. NULL: nobody wants to
 * know. */
#ifndef HAK_HEAP_EVENTS_H
#define HAK_HEAP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "heap/heap.h"
#include "os/frame.h"

struct freeing; /* keeper.h */

/* A request for a large block, whose site is to be found out. */
struct site_request {
    uintptr_t word;    /* the site, as the program has named it; 0: it has not */
    size_t size;
    bool look;         /* is it worth a look at the stack? */
    uintptr_t caller;  /* to where the library's function returns */
    const struct os_frame *from; /* a function of the library's that the program has called */
};

typedef void *heap_events_sample(struct heap *heap, size_t size, size_t align, const struct os_frame *from);
typedef bool heap_events_free_other(void *p, const struct freeing *how);
typedef bool heap_events_size_of_other(const void *p, size_t *size);

struct heap_events {
    /* A thread has requested another policy.heartbeat_bytes. Inside its door. */
    void (*heartbeat)(struct heap *heap);

    /* A request of a small block, aligned to `align` if that is more than usual, that is why the next heartbeat is due: a block from
     * elsewhere, or NULL: the heap's will do. `from`: a function of the library's that the program has called. Inside the door.
     * It and the two of other pointers are set with release, it last, and read with acquire: libraries' constructors may have started threads. */
    heap_events_sample *sample;

    /* The number of the site of a request for a large block (large/site.h). Inside the door. */
    uint32_t (*site)(const struct site_request *request);

    /* A small request found its magazine empty, and it was filled with so many blocks. Inside the door. Set at any time. */
    void (*refilled)(const struct heap *heap, size_t size, unsigned class, size_t blocks);

    /* Of a pointer that is not to a block of the heap's. False: nor of any other's. Any thread, at any moment. */
    heap_events_free_other *free_other;
    heap_events_size_of_other *size_of_other;

    /* In the child of a fork, whose other threads are gone, as soon as it may use the heap. */
    void (*forked)(void);

    /* The door has been entered, and is about to be left after an operation on p, of `size` bytes if those are known. Inside it. */
    void (*entered)(struct heap *heap);
    void (*leaving)(struct heap *heap, const char *operation, const void *p, size_t size);

    /* A tool outside asks for something (control.h). Outside the door, by a thread that has just left it. */
    void (*asked)(void);
};

extern HIDDEN struct heap_events heap_events;

#endif
