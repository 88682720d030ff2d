/* Names for the __atomic built-ins, which work on plain objects: a word that only its owner writes may be
 * read plainly by the owner and with load_relaxed by others. */
#ifndef HAK_BASE_ATOMIC_H
#define HAK_BASE_ATOMIC_H

#include <stdbool.h>

#include "base/compiler.h"

#define load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)

/* A relaxed load that the compiler may make part of the instruction that uses the value; gcc leaves an atomic load one of its own.
 * Of a word whose value is used once, or that only this thread writes. */
#if HAK_TSAN
#define load_in_place(p) load_relaxed(p)
#else
#define load_in_place(p) (*(p))
#endif

/* For a pointer that is followed at once: the processor orders what it loads through it after it. */
#if HAK_TSAN
#define load_dependent(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#else
#define load_dependent(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#endif

#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define sub_relaxed(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELAXED)
#define exchange_acquire(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)

/* Orders this thread's accesses against its own signal handlers, and, together with the membarrier system
 * call on the other side, against other threads. Costs no instruction. */
#define compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* What was stored before comes before what is stored after, for readers in other processes; and the same of loads, for who reads what may
 * change meanwhile, and then looks whether it did. ThreadSanitizer has no fences, and sees no other processes. */
#if HAK_TSAN
#define store_fence() compiler_fence()
#define load_fence() compiler_fence()
#else
#define store_fence() __atomic_thread_fence(__ATOMIC_RELEASE)
#define load_fence() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Of what the owner of a heap writes on its hot path and a thief reads (freeze.c): the membarrier system call orders the two,
 * and costs the owner nothing. ThreadSanitizer does not know of it. */
#if HAK_TSAN
#define store_before_barrier(p, v) store_release(p, v)
#define load_after_barrier(p) load_acquire(p)
#else
#define store_before_barrier(p, v) \
    do { \
        compiler_fence(); \
        *(p) = (v); \
        compiler_fence(); \
    } while (0)
#define load_after_barrier(p) load_relaxed(p)
#endif

/* *word -= n by the word's only writer, returning the new value. One instruction on x86. Threads that have
 * no heap yet share the static closed view, whose count means nothing; only ThreadSanitizer minds. And *word += n, of counts
 * that others read. */
#if HAK_TSAN
#define owner_add(word, n) store_relaxed((word), *(word) + (n))
#define owner_subtract(word, n) (__atomic_sub_fetch((word), (n), __ATOMIC_RELAXED))
#else
#define owner_add(word, n) (*(word) += (n))
#define owner_subtract(word, n) (*(word) -= (n))
#endif

/* If *word is *expected, *word = value; else *expected is what it is, and false. By the word's only writer: a signal handler of the
 * same thread comes before it or after it, other threads are not synchronised with. On x86 an exchange would be locked, and
 * wait for all accesses to memory before it. */
#if defined(__x86_64__) && !HAK_TSAN
#define owner_compare_exchange(word, expected, value) \
    __extension__({ \
        bool same; \
        __asm__ volatile("cmpxchg %3, %1" : "+a"(*(expected)), "+m"(*(word)), "=@ccz"(same) : "r"(value) : "memory"); \
        same; \
    })
#else
#define owner_compare_exchange(word, expected, value) \
    __atomic_compare_exchange_n((word), (expected), (value), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#endif

#endif
