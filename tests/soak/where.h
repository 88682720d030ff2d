/* Where a thread is in the soak, and the one line that says what failed there. */
#ifndef HAK_SOAK_WHERE_H
#define HAK_SOAK_WHERE_H

#include <stdbool.h>
#include <stddef.h>

struct block;

/* The arguments that repeat the run, for the line; they must stay alive. With `catch_signals` SIGABRT, by which an
 * allocator ends a process, and faults get the line too, and then end the process as they would have. */
void where_begin(const char *arguments, bool catch_signals);

/* Says where the calling thread is; `phase` must stay alive. */
void where_set(size_t round, const char *phase, size_t thread);

/* Writes the line and ends the process with 1, without allocating. `block` may be NULL. The first failure is the only
 * one that is told. */
__attribute__((noreturn, format(printf, 2, 3))) void failed(const struct block *block, const char *format, ...);

#endif
