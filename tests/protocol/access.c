/*
 * What code compiled with -fsanitize=thread calls at each access to memory, in place of ThreadSanitizer's runtime:
 * the access is a step of the scheduler (scheduler.h). Also the few libc functions that write memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "scheduler.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define CALLER __builtin_return_address(0)

/* ---- Plain accesses: announced here, made by the code itself. */

static void plain_read(const void *at, size_t bytes, const void *caller)
{
    sched_step(OP_READ, at, bytes, 0, caller);
    sched_peek(at, bytes);
}

#define PLAIN(name, bytes)                                                                                             \
    void __tsan_read##name(void *at) { plain_read(at, bytes, CALLER); }                                                \
    void __tsan_write##name(void *at) { sched_step(OP_WRITE, at, bytes, 0, CALLER); }                                  \
    void __tsan_unaligned_read##name(void *at) { plain_read(at, bytes, CALLER); }                                      \
    void __tsan_unaligned_write##name(void *at) { sched_step(OP_WRITE, at, bytes, 0, CALLER); }

PLAIN(1, 1)
PLAIN(2, 2)
PLAIN(4, 4)
PLAIN(8, 8)
PLAIN(16, 16)

void __tsan_read_range(void *at, size_t bytes)
{
    plain_read(at, bytes, CALLER);
}

void __tsan_write_range(void *at, size_t bytes)
{
    sched_step(OP_WRITE, at, bytes, 0, CALLER);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

/* ---- Atomic accesses: made here. Only a store is buffered, and only to a word that is shared. */

static bool is_buffered(const void *at, size_t bytes)
{
    return sched_on() && sched_is_shared(at, bytes);
}

#define ATOMIC(bits, type)                                                                                             \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                                                \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        sched_step(OP_READ, (const void *)at, sizeof *at, 0, CALLER);                                                  \
        uint64_t value;                                                                                                \
        return sched_on() && sched_forward((const void *)at, &value) ? (type)value : *at;                              \
    }                                                                                                                  \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                                         \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        if (is_buffered((const void *)at, sizeof *at))                                                                 \
            sched_step(OP_STORE, (const void *)at, sizeof *at, (uint64_t)value, CALLER);                               \
        else                                                                                                           \
            *at = value;                                                                                               \
    }                                                                                                                  \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                                      \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        sched_step(OP_WRITE, (const void *)at, sizeof *at, 0, CALLER);                                                 \
        type old = *at;                                                                                                \
        *at = value;                                                                                                   \
        return old;                                                                                                    \
    }                                                                                                                  \
    type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int order)                                     \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        sched_step(OP_WRITE, (const void *)at, sizeof *at, 0, CALLER);                                                 \
        type old = *at;                                                                                                \
        *at = (type)(old + value);                                                                                     \
        return old;                                                                                                    \
    }                                                                                                                  \
    type __tsan_atomic##bits##_fetch_sub(volatile type *at, type value, int order)                                     \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        sched_step(OP_WRITE, (const void *)at, sizeof *at, 0, CALLER);                                                 \
        type old = *at;                                                                                                \
        *at = (type)(old - value);                                                                                     \
        return old;                                                                                                    \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected, type value, int good, int bad) \
    {                                                                                                                  \
        (void)good;                                                                                                    \
        (void)bad;                                                                                                     \
        sched_step(OP_WRITE, (const void *)at, sizeof *at, 0, CALLER);                                                 \
        if (*at == *expected) {                                                                                        \
            *at = value;                                                                                               \
            return 1;                                                                                                  \
        }                                                                                                              \
        *expected = *at;                                                                                               \
        return 0;                                                                                                      \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, type value, int good, int bad)  \
    {                                                                                                                  \
        (void)good;                                                                                                    \
        (void)bad;                                                                                                     \
        sched_step(OP_WRITE, (const void *)at, sizeof *at, 0, CALLER);                                                 \
        if (*at == *expected) {                                                                                        \
            *at = value;                                                                                               \
            return 1;                                                                                                  \
        }                                                                                                              \
        *expected = *at;                                                                                               \
        return 0;                                                                                                      \
    }

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* A fence of the compiler alone: the buffer stays as it is. */
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* ---- The allocator is compiled with these names for those without the prefix. */

void *protocol_memset(void *at, int value, size_t bytes)
{
    if (bytes > 0)
        sched_step(OP_WRITE, at, bytes, 0, CALLER);
    return memset(at, value, bytes);
}

void *protocol_memcpy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        sched_step(OP_READ, from, bytes, 0, CALLER);
        sched_step(OP_WRITE, to, bytes, 0, CALLER);
    }
    sched_peek(from, bytes);
    memcpy(to, from, bytes);
    sched_unpeek();
    return to;
}

void *protocol_memmove(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        sched_step(OP_READ, from, bytes, 0, CALLER);
        sched_step(OP_WRITE, to, bytes, 0, CALLER);
    }
    sched_peek(from, bytes);
    memmove(to, from, bytes);
    sched_unpeek();
    return to;
}
