/* What the allocator sees of the world while it is searched: the kernel, the clock, the thread library. And the
 * memory that is put back before each run. */
#ifndef HAK_TEST_WORLD_H
#define HAK_TEST_WORLD_H

/* The state to begin each run from is the present one. */
void world_save(void);
void world_restore(void);

/* What the C library does when the calling thread ends. */
void world_end_thread(void);

#endif
