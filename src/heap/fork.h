/* fork() in a process with threads: the three handlers for pthread_atfork. */
#ifndef HAK_HEAP_FORK_H
#define HAK_HEAP_FORK_H

#include <stdbool.h>

/* Takes every lock in rank order and keeps all other threads out of their heaps, so that the child sees each
 * heap whole, unless its owner is inside the door at this moment. */
void fork_prepare(void);

/* Undoes fork_prepare. */
void fork_parent(void);

/* Heaps of vanished threads become idle; those whose owner was inside the door are never used again (what
 * they hold is lost to the child). */
void fork_child(void);

/* Does the calling thread hold a lock that an allocation may want? Only a signal handler that interrupted
 * the allocator finds so. */
bool fork_holds_any_lock(void);

#endif
