#include "check/quarantine.h"

#include "base/bits.h"
#include "base/shard.h"

/* What may wait in a shard; a block counts at least so much, for its record. */
#define BYTES_MOST (16 * MIB)
#define WEIGHT_LEAST ((size_t)64)

/* Closed pages are only addresses; of however many, one block is not to send away all that waits with it. */
enum { CLOSED_SHIFT = 4 };
#define CLOSED_MOST (BYTES_MOST / 4)

/* Blocks in the order in which they were freed. Guarded by the locks of the runs in it. */
static struct queue {
    struct checked *first;
    struct checked *last;
    size_t bytes;
} ALIGNED(SHARD_ALIGN) queues[SHARDS];

static size_t weight(const struct checked *block)
{
    const struct run *run = run_of(block);
    size_t bytes = run->closed ? min_size(run->stride >> CLOSED_SHIFT, CLOSED_MOST) : run->stride;
    return max_size(bytes, WEIGHT_LEAST);
}

void quarantine_put_locked(struct checked *block)
{
    struct queue *queue = &queues[run_of(block)->shard];
    block->next = NULL;
    if (queue->last != NULL)
        queue->last->next = block;
    else
        queue->first = block;
    queue->last = block;
    queue->bytes += weight(block);
}

struct checked *quarantine_take_locked(unsigned shard, bool any)
{
    struct queue *queue = &queues[shard];
    struct checked *block = queue->first;
    if (block == NULL || (!any && queue->bytes <= BYTES_MOST))
        return NULL;
    queue->first = block->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->bytes -= weight(block);
    return block;
}
