/*
 * The door: where every operation goes that the two hot functions do not finish.
 *
 *   hot_malloc ──▶ door_malloc ──▶ enter ─▶ magazine_pop ─▶ mail_fill │ shelf_take
 *                        │                  large_alloc       nothing to be had: relief_give_back, once more
 *                        │           leave ─▶ heartbeat, relief_at_heartbeat; outside: relief_tell
 *                        └── no heap: start_thread; in the door already, or dead: orphan_malloc
 *   hot_free ────▶ door_free ────▶ enter ─▶ route_own ─▶ magazine_push ─▶ shelf_put …    mine
 *                                           mail_add, mail_send                         another heap's
 *                                           route_large ─▶ large_free                   large
 *                                           route_free ─▶ report_pointer                not a block: ends here
 */
#ifndef HAK_HEAP_DOOR_H
#define HAK_HEAP_DOOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "heap/keeper.h"
#include "span/limit.h"

struct large;

/* For callers that look at size classes first: gives the calling thread its heap, if it has none yet. False: the
 * allocator has not started, and there are no classes. */
bool door_open(void);

/* malloc. For sizes up to SMALL_MAX the caller has charged its view's budget; for others this does. On
 * failure NULL, errno ENOMEM. */
NOINLINE void *door_malloc(size_t size);

/* The same for a request of `size` bytes, which were charged, that gets a block of the class of `bytes`, up to SMALL_MAX: all blocks of
 * that class are aligned to `align`, or it is to have room to grow. Not in the hardened library. */
void *door_malloc_of(size_t bytes, size_t size, size_t align);

/* The same for operator new and operator new[]. */
NOINLINE void *door_new(size_t size);
NOINLINE void *door_new_array(size_t size);

/* A block of the keeper's, which there is. On failure NULL, errno ENOMEM. */
void *door_malloc_kept(size_t size, size_t align, enum family family);

/* The same, and it reads as zero. */
void *door_calloc_kept(size_t size);

/* Makes a block of the keeper's, which there is, of `before` bytes, one of `size` bytes where it is. False: it has to move. */
bool door_resize_kept(void *p, size_t before, size_t size);

/* A large block, whatever its size; see large_alloc. On failure NULL, errno ENOMEM. */
void *door_malloc_large(size_t size, size_t align, bool *zero);

/* A large block for the site that the program calls `site`. */
void *door_malloc_at(size_t size, uintptr_t site);

/* free, of any 64-bit value. errno is kept. */
NOINLINE void door_free(void *p);
NOINLINE void door_free_as(void *p, struct freeing how);

/* large_resize. */
void *door_resize_large(struct large *block, size_t size);

/* A live block that stays where it is, and that the profiler may have sampled, is used as one of `size` bytes from now on. */
void door_use_sampled(const void *p, size_t size);

/* A small block that may move, and whose slab is sparse, moves with its first `bytes` bytes to where blocks are taken from now, so
 * that the slab becomes empty. Returns where it is. */
void *door_settle(void *p, size_t bytes);

/* The bytes that may be used of a block; a pointer that is no block ends the process. */
size_t door_usable_size(const void *p);

/* See hak_prewarm and hak_purge. */
size_t door_prewarm(size_t size, size_t count);
size_t door_purge(bool also_cached);

/* Calls work(argument) inside the door, for what takes locks: a signal handler that allocates meanwhile must see that it
 * has interrupted their holder. */
void door_visit(void (*work)(void *argument), void *argument);

#endif
