/* What the compiler must be told: branch weights, inlining, and the few places where an instrumented
 * build differs. HAK_DEBUG and HAK_HARDENED are 0 or 1, set by the build. */
#ifndef HAK_BASE_COMPILER_H
#define HAK_BASE_COMPILER_H

#include <features.h>

/* Is this the hardened library? Of the same sources; its own are api/hardened.c, heap/seal.c, delay.c and
 * fence.c, large/fenced.c and base/zero.c. */
enum { HARDENED = HAK_HARDENED };

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((noinline, cold))
/* Code of the hot functions, and of what closes and opens the heap around the program's signal handlers: a handler
 * that interrupts it needs the heap closed (api/interrupted.h). */
#define FRAGILE __attribute__((section("hak_fragile")))
/* Functions that a program may have called the library by, and that stacks leave out (observe/stack.h). */
#define ENTRANCE __attribute__((section("hak_entrance")))
#define HIDDEN __attribute__((visibility("hidden")))
#define WEAK __attribute__((weak))
/* A function that glibc has, and other libcs may not have. A weak reference alone would not bring it in from glibc's archive. */
#if defined(__GLIBC__)
#define IS_GLIBC 1
#define OF_GLIBC
#else
#define IS_GLIBC 0
#define OF_GLIBC WEAK
#endif
#define ALIGNED(n) __attribute__((aligned(n)))
#define UNSANITIZED __attribute__((no_sanitize("address", "thread")))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

#if defined(__SANITIZE_THREAD__)
#define HAK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAK_TSAN 1
#endif
#endif
#if !defined(HAK_TSAN)
#define HAK_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define HAK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAK_ASAN 1
#endif
#endif
#if !defined(HAK_ASAN)
#define HAK_ASAN 0
#endif

/* The compiler may not know that the value is what it was: gcc would compute a sum that two addresses have in common by an
 * instruction of its own, where both fit an addressing mode. */
#define PIN(value) __asm__("" : "+r"(value))

/* True in a build whose runtime owns parts of the address space and refuses mappings at chosen places. */
#define HAK_SANITIZED (HAK_TSAN || HAK_ASAN)

#endif
