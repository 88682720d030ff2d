#include "base/lock.h"

#include <time.h>

#include "base/alone.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/kernel.h"
#include "base/shard.h"
#include "base/thread.h"

#define FREE ((uintptr_t)0)
#define WAITERS ((uintptr_t)1)

enum { SPINS = 100, SLEEP_MOST_NS = 10 * 1000 * 1000 };

#if HAK_DEBUG
static _Thread_local uint32_t ranks_held; /* bit r: this thread holds a lock of rank r */
#else
static uint32_t ranks_held; /* unused; keeps the logic below free of #if */
#endif

/* Of a shard of threads: heaps' locks that they have, are about to take, or have just dropped. */
static uint32_t heap_locks[SHARDS];

static uintptr_t passing; /* thread_self() of the one that holds all locks, else 0 */
static uint32_t passed;   /* locks that it would have taken since, and not dropped yet */

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* On the low half of the word, where the lowest bits of the holder are. */
static void futex(uintptr_t *word, int operation, uint32_t value, const struct timespec *most)
{
    uint32_t *half = (uint32_t *)(void *)word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    (void)kernel6(SYS_futex, (long)half, operation, (long)value, (long)most, 0, 0);
}

/* Not for ever: the one that was woken may be in a signal handler, and that may wait for a lock of ours. */
static void sleep_while(uintptr_t *word, uintptr_t value)
{
    static const struct timespec most = {.tv_nsec = SLEEP_MOST_NS};
    futex(word, FUTEX_WAIT_PRIVATE, (uint32_t)value, &most);
}

/* Who has waited does not know whether others still do, and takes the lock as one that is waited for. */
static void wait_for(struct lock *lock)
{
    for (int spin = 0; spin < SPINS; spin++) {
        pause_briefly();
        if (load_relaxed(&lock->word) == FREE && exchange_if(&lock->word, FREE, thread_self()))
            return;
    }
    while (!exchange_if(&lock->word, FREE, thread_self() | WAITERS)) {
        uintptr_t seen = load_relaxed(&lock->word);
        if (seen != FREE && ((seen & WAITERS) != 0 || exchange_if(&lock->word, seen, seen | WAITERS)))
            sleep_while(&lock->word, seen | WAITERS);
    }
}

static COLD void wait_and_take(struct lock *lock)
{
    uint64_t started = clock_now_ns();
    wait_for(lock);
    owner_add(&lock->waits, 1u);
    owner_add(&lock->waited_ns, clock_now_ns() - started);
}

ALWAYS_INLINE bool passes(void)
{
    uintptr_t thread = load_relaxed(&passing);
    return UNLIKELY(thread != 0) && thread == thread_self();
}

static NOINLINE void count_heap_lock(uint32_t change)
{
    (void)add_relaxed(&heap_locks[shard_of_thread()], change);
}

static void take(struct lock *lock)
{
    ASSERT(!lock_is_mine(lock));
    if (UNLIKELY(lock->rank == LOCK_HEAP))
        count_heap_lock(1);
    compiler_fence();
    if (UNLIKELY(!exchange_if(&lock->word, FREE, thread_self())))
        wait_and_take(lock);
    owner_add(&lock->taken, 1u);
    if (HAK_DEBUG)
        ranks_held |= 1u << lock->rank;
}

/* The handler of a signal that comes in between leaves the count as it was. */
static COLD void pass(uint32_t change)
{
    compiler_fence();
    store_relaxed(&passed, passed + change);
    compiler_fence();
}

void lock_take(struct lock *lock)
{
    if (passes()) {
        pass(1);
        return;
    }
    ASSERT(ranks_held >> lock->rank == 0);
    take(lock);
}

void lock_take_sibling(struct lock *lock)
{
    if (passes()) {
        pass(1);
        return;
    }
    take(lock);
}

static COLD void drop_and_wake(struct lock *lock)
{
    store_release(&lock->word, FREE);
    futex(&lock->word, FUTEX_WAKE_PRIVATE, 1, NULL);
}

void lock_drop(struct lock *lock)
{
    if (passes()) {
        pass((uint32_t)-1);
        return;
    }
    ASSERT(lock_is_mine(lock));
    if (HAK_DEBUG)
        ranks_held &= ~(1u << lock->rank);
    if (UNLIKELY(!exchange_if(&lock->word, thread_self(), FREE)))
        drop_and_wake(lock);
    compiler_fence();
    if (UNLIKELY(lock->rank == LOCK_HEAP))
        count_heap_lock((uint32_t)-1);
}

bool lock_may_be_of_heap(void)
{
    return load_relaxed(&heap_locks[shard_of_thread()]) != 0;
}

void lock_after_fork(void)
{
    for (unsigned i = 0; i < SHARDS; i++)
        store_relaxed(&heap_locks[i], 0u);
}

bool lock_is_mine(const struct lock *lock)
{
    return (load_relaxed(&lock->word) & ~WAITERS) == thread_self();
}

bool lock_is_taken(const struct lock *lock)
{
    return load_relaxed(&lock->word) != FREE;
}

bool lock_is_wanted(const struct lock *lock)
{
    return (load_relaxed(&lock->word) & WAITERS) != 0;
}

void lock_pass_begin(void)
{
    store_relaxed(&passed, 0u);
    store_relaxed(&passing, thread_self());
}

void lock_pass_end(void)
{
    store_relaxed(&passing, (uintptr_t)0);
}

bool lock_passes(void)
{
    return passes();
}

bool lock_is_passed(void)
{
    return load_relaxed(&passed) != 0;
}
