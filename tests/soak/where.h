/* Where a thread is in the soak, and the one line that says what failed there. */
#ifndef HAK_SOAK_WHERE_H
#define HAK_SOAK_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;

/* How to repeat the run, for the line; and a line for the signals by which an allocator ends a process. */
void where_begin(uint64_t seed, size_t threads, bool catch_signals);

/* Says where the calling thread is; `phase` must stay alive. */
void where_set(size_t round, const char *phase, size_t thread);

/* Writes the line and ends the process with 1, without allocating. `block` may be NULL. The first failure is the only
 * one that is told. */
__attribute__((noreturn, format(printf, 2, 3))) void failed(const struct block *block, const char *format, ...);

#endif
