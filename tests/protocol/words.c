/* What the kernel does to words of other threads, step by step: compiled like the allocator. Linked with --wrap. */
#include "base/atomic.h"
#include "os/os.h"

bool __wrap_os_holds(const void *at, uint32_t value);
bool __wrap_os_set_bit(uintptr_t *at, uint32_t low, unsigned bit);

/* Behind a full barrier, as every exchange is one. */
static uintptr_t look(uintptr_t *at)
{
    uintptr_t seen = 0;
    (void)__atomic_compare_exchange_n(at, &seen, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return seen;
}

bool __wrap_os_holds(const void *at, uint32_t value)
{
    return (uint32_t)look((uintptr_t *)(uintptr_t)at) == value;
}

bool __wrap_os_set_bit(uintptr_t *at, uint32_t low, unsigned bit)
{
    uintptr_t seen = look(at);
    if ((uint32_t)seen != low)
        return false;
    while (!__atomic_compare_exchange_n(at, &seen, seen | (uintptr_t)1 << bit, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
    return true;
}
