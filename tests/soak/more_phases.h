/* The phases that do more than make and free small blocks, for phases.c. */
#ifndef HAK_SOAK_MORE_PHASES_H
#define HAK_SOAK_MORE_PHASES_H

#include "hand.h"

/* 32 KiB to 16 MiB, growing and shrinking by realloc. */
void phase_large(struct hand *hand);

/* hak_purge and malloc_trim between some work. */
void phase_purge(struct hand *hand);

/* Other limits and modes, for all threads, between some work. */
void phase_switch(struct hand *hand);

/* Short threads that leave all they have to others, and end. */
void phase_threads(struct hand *hand);

/* Children that allocate, check, free and exit. */
void phase_fork(struct hand *hand);

#endif
