#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fail.h"

enum { FREE = 0, TAKEN = 1, WAITED_FOR = 2, SPINS = 100 };

#if HAK_DEBUG
static _Thread_local uint32_t ranks_held; /* bit r: this thread holds a lock of rank r */
#else
static uint32_t ranks_held; /* unused; keeps the logic below free of #if */
#endif

static uintptr_t passing; /* self() of the thread that holds all locks, else 0 */

static uintptr_t self(void)
{
    return (uintptr_t)pthread_self();
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex(uint32_t *word, int operation, uint32_t value)
{
    int saved = errno;
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
    errno = saved;
}

static void note_taken(struct lock *lock)
{
    store_relaxed(&lock->owner, self());
    if (HAK_DEBUG)
        ranks_held |= 1u << lock->rank;
}

bool lock_try(struct lock *lock)
{
    uint32_t expected = FREE;
    if (!__atomic_compare_exchange_n(&lock->word, &expected, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    note_taken(lock);
    return true;
}

static COLD void wait_and_take(struct lock *lock)
{
    for (int spin = 0; spin < SPINS; spin++) {
        pause_briefly();
        uint32_t expected = FREE;
        if (load_relaxed(&lock->word) == FREE &&
            __atomic_compare_exchange_n(&lock->word, &expected, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
    }
    while (exchange_acquire(&lock->word, (uint32_t)WAITED_FOR) != FREE)
        futex(&lock->word, FUTEX_WAIT, WAITED_FOR);
}

void lock_take_sibling(struct lock *lock)
{
    ASSERT(!lock_is_mine(lock));
    uint32_t expected = FREE;
    if (UNLIKELY(!__atomic_compare_exchange_n(&lock->word, &expected, TAKEN, false, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED)))
        wait_and_take(lock);
    note_taken(lock);
}

void lock_take(struct lock *lock)
{
    if (UNLIKELY(lock_passes()))
        return;
    ASSERT(ranks_held >> lock->rank == 0);
    lock_take_sibling(lock);
}

void lock_drop(struct lock *lock)
{
    if (UNLIKELY(lock_passes()))
        return;
    ASSERT(lock_is_mine(lock));
    if (HAK_DEBUG)
        ranks_held &= ~(1u << lock->rank);
    store_relaxed(&lock->owner, (uintptr_t)0);
    if (__atomic_exchange_n(&lock->word, FREE, __ATOMIC_RELEASE) == WAITED_FOR)
        futex(&lock->word, FUTEX_WAKE, 1);
}

bool lock_is_mine(const struct lock *lock)
{
    return load_relaxed(&lock->owner) == self();
}

void lock_pass_begin(void)
{
    store_relaxed(&passing, self());
}

void lock_pass_end(void)
{
    store_relaxed(&passing, (uintptr_t)0);
}

bool lock_passes(void)
{
    uintptr_t thread = load_relaxed(&passing);
    return thread != 0 && thread == self();
}
