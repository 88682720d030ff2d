#include "ledger.h"

#include "check.h"
#include "random.h"

#include <pthread.h>
#include <sys/mman.h>

static struct ledger pool;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

void ledger_init(struct ledger *ledger)
{
    const size_t bytes = LEDGER_MOST * sizeof(struct block);
    *ledger = (struct ledger){
        .blocks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
    };
    CHECK(ledger->blocks != MAP_FAILED);
}

void ledger_drop(struct ledger *ledger)
{
    CHECK(ledger->count == 0);
    CHECK(madvise(ledger->blocks, LEDGER_MOST * sizeof(struct block), MADV_DONTNEED) == 0);
}

void ledger_put(struct ledger *ledger, const struct block *block)
{
    CHECK(ledger->count < LEDGER_MOST);
    ledger->blocks[ledger->count++] = *block;
    ledger->bytes += block->size;
}

struct block ledger_take(struct ledger *ledger, size_t index)
{
    const struct block block = ledger->blocks[index];
    ledger->blocks[index] = ledger->blocks[--ledger->count];
    ledger->bytes -= block.size;
    return block;
}

bool ledger_resize(struct ledger *ledger, size_t index, size_t size, uint64_t *random)
{
    struct block *block = &ledger->blocks[index];
    const size_t old = block->size;
    const bool done = block_resize(block, size, random);
    ledger->bytes += block->size - old;
    return done;
}

void pool_init(void)
{
    ledger_init(&pool);
}

void pool_drop(void)
{
    ledger_drop(&pool);
}

bool pool_give(const struct block *block)
{
    pthread_mutex_lock(&pool_lock);
    const bool room = pool.count < POOL_MOST;
    if (room) {
        ledger_put(&pool, block);
    }
    pthread_mutex_unlock(&pool_lock);
    return room;
}

bool pool_take(struct block *block, uint64_t *random)
{
    const uint64_t dice = random_next(random);
    pthread_mutex_lock(&pool_lock);
    const bool some = pool.count > 0;
    if (some) {
        *block = ledger_take(&pool, dice % pool.count);
    }
    pthread_mutex_unlock(&pool_lock);
    return some;
}
