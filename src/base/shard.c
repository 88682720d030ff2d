#include "base/shard.h"

#include "base/lock.h"

static struct lock *lock_of(void *shards, size_t bytes, unsigned i)
{
    return (struct lock *)(void *)((char *)shards + i * bytes);
}

void shards_lock(void *shards, size_t bytes)
{
    lock_take(lock_of(shards, bytes, 0));
    for (unsigned i = 1; i < SHARDS; i++)
        lock_take_sibling(lock_of(shards, bytes, i));
}

void shards_unlock(void *shards, size_t bytes)
{
    for (unsigned i = SHARDS; i-- > 0;)
        lock_drop(lock_of(shards, bytes, i));
}

bool shards_lock_is_mine(const void *shards, size_t bytes)
{
    bool mine = false;
    for (unsigned i = 0; i < SHARDS; i++)
        mine |= lock_is_mine(lock_of((void *)(uintptr_t)shards, bytes, i));
    return mine;
}
