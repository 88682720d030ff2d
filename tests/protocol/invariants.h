/* What must hold: each block is in one place. */
#ifndef HAK_TEST_INVARIANTS_H
#define HAK_TEST_INVARIANTS_H

#include <stddef.h>

/* Every scenario uses one class, the largest, with 4 blocks a slab and magazines of 2; or ones of more than a unit. */
enum { BLOCK = 32768 };

/* malloc and free of such a block by the hot functions, with a note of who has it. */
void *block_take(void);
void *block_take_of(size_t size);
void block_free(void *p);

/* With nothing running: every block of every slab is at exactly one place, and every count agrees. */
void invariants_check(void);

/* In the child of a fork: what another thread had in its hands is lost, one block at most. */
void invariants_thread_gone(void);

#endif
