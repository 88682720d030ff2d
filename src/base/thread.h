/* Which thread this is, as one word that no other living thread has: even, and never 0. It is the address that thread-local variables
 * are found from, read where it is used: pthread_self would be a call into libc at each lock. */
#ifndef HAK_BASE_THREAD_H
#define HAK_BASE_THREAD_H

#include <stdint.h>

#include "base/compiler.h"

/* Async-signal-safe. */
ALWAYS_INLINE uintptr_t thread_self(void)
{
#if defined(__x86_64__)
    uintptr_t pointer; /* the word there is its own address */
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#elif defined(__aarch64__)
    return (uintptr_t)__builtin_thread_pointer();
#endif
}

#endif
