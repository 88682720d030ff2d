/*
 * Runs of units as large blocks leave them to the span layer. The pages of a moved run came by mremap: they are a mapping of their
 * own until the run is given back, and where they came from is a hole in the range.
 *
 * The kernel may refuse to replace a run, before it unmaps what is there or after: a mark in the run, written before it is
 * asked, tells which.
 */
#ifndef HAK_LARGE_UNITS_H
#define HAK_LARGE_UNITS_H

#include <stdbool.h>
#include <stddef.h>

/* A run from the span layer, which gets back what the BigCache keeps if it has none; *zero: it reads as zero. */
void *units_take(size_t units, size_t align, bool *zero);

/* Gives a run back; `zero` if it reads as zero. */
void units_give(char *at, size_t units, bool moved, bool zero);

/* Maps pages where nothing may be mapped any more. False: something else may be there. */
bool units_fill_hole(char *at, size_t units);

/* Gives back a run that was a hole, and is `filled`, or gives it up. */
void units_give_hole(char *at, size_t units, bool filled);

/* Marks a run that the kernel is to be asked to replace. */
void units_mark(char *at);

/* Gives back a marked run that the kernel has refused to replace. */
void units_give_refused(char *at, size_t units);

#endif
