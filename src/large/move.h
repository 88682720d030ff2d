/*
 * Blocks that grow without a copy: their pages move into a longer run (mremap).
 */
#ifndef HAK_LARGE_MOVE_H
#define HAK_LARGE_MOVE_H

#include <stdbool.h>
#include <stddef.h>

/* Moves the pages of a block of `units` at `base`, whose tag then says that it has gone, to a run of more units, which nobody knows
 * yet. `moved`: that was done with it before. Returns the run; NULL: only a copy will do, and all is as it was. */
char *move_pages(char *base, size_t units, bool moved, size_t longer);

/* A moved run was given back: of those that there are at once there are only so many. */
void move_forget(void);

/* Does a run that long get huge pages when a block moves there? It then begins with one. */
bool move_gives_huge_pages(size_t units);

#endif
