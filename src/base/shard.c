#include "base/shard.h"

#include "base/lock.h"

static struct lock *lock_of(void *shards, size_t bytes, unsigned i)
{
    return (struct lock *)(void *)((char *)shards + i * bytes);
}

void shards_lock(void *shards, size_t bytes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (i == 0)
            lock_take(lock_of(shards, bytes, i));
        else
            lock_take_sibling(lock_of(shards, bytes, i));
}

void shards_unlock(void *shards, size_t bytes, unsigned count)
{
    for (unsigned i = count; i-- > 0;)
        lock_drop(lock_of(shards, bytes, i));
}

bool shards_lock_is_mine(const void *shards, size_t bytes, unsigned count)
{
    bool mine = false;
    for (unsigned i = 0; i < count; i++)
        mine |= lock_is_mine(lock_of((void *)(uintptr_t)shards, bytes, i));
    return mine;
}
