/* Is the calling thread the process's only one? Then a word that threads exchange needs no locked instruction, which waits for all
 * the stores before it (docs/decisions/0043). */
#ifndef HAK_BASE_ALONE_H
#define HAK_BASE_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* glibc's, from 2.32 on: not 0 while there is no thread that it made but this one. Where there is none such, its address is NULL. */
extern char __libc_single_threaded __attribute__((weak)); // NOLINT(bugprone-reserved-identifier): glibc's name

/* Was a thread started, or about to be, that libc does not know (os/service_thread.c)? */
extern bool alone_no_more;

/* Does libc say whether there are others? ThreadSanitizer would not see the order that the words below give. */
ALWAYS_INLINE bool alone_is_told(void)
{
    return !HAK_TSAN && &__libc_single_threaded != NULL;
}

/* True only if no other thread shares the memory, and none will before the caller makes one: what the caller reads or writes next
 * is its own. Async-signal-safe. */
ALWAYS_INLINE bool alone(void)
{
    return alone_is_told() && load_relaxed(&__libc_single_threaded) != 0 && !load_relaxed(&alone_no_more);
}

/* If *word is `expected`, *word = value, and true. Acquires and releases; a signal handler of this thread comes before or after. */
ALWAYS_INLINE bool exchange_if(uintptr_t *word, uintptr_t expected, uintptr_t value)
{
    if (!alone())
        return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    compiler_fence();
    bool same = owner_compare_exchange(word, &expected, value);
    compiler_fence();
    return same;
}

#endif
