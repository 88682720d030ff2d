#include "heap/crowd.h"

#include <stdint.h>

#include "base/bits.h"
#include "base/claim.h"
#include "heap/life.h"
#include "os/os.h"
#include "span/limit.h"
#include "span/span.h"

/* Fewer threads, or less memory in slabs and large blocks: nobody asks, no file is opened. */
enum { THREADS_LEAST = 16 };
#define HELD_LEAST (32 * MIB)

/* So many threads of each processor have the whole. */
enum { OF_PROCESSOR = 4 };

/* Asked for the first time, and again when they have doubled: threads may bind themselves to other processors when they begin. */
static size_t next_threads = THREADS_LEAST;
size_t crowd_processors;

/* One thread at a time asks (os.h). */
static uint32_t asking;

size_t crowd_part(size_t bytes, size_t least)
{
    size_t most = load_relaxed(&crowd_processors);
    size_t threads = life_count();
    if (bytes <= least || threads / OF_PROCESSOR <= most)
        return bytes;
    return max_size(bytes / threads * most * OF_PROCESSOR, least);
}

static void ask(size_t threads)
{
    size_t processors = os_processors();
    store_relaxed(&crowd_processors, processors);
    store_relaxed(&next_threads, 2 * threads);
    span_spread(processors);
}

void crowd_consider(void)
{
    size_t threads = life_count();
    /* A fork drops the locks of the shards that there were when it took them. */
    if (LIKELY(threads < load_relaxed(&next_threads)) || load_relaxed(&limit_bytes) < HELD_LEAST || lock_passes() || !claim_take(&asking))
        return;
    if (threads >= load_relaxed(&next_threads)) /* nobody was here first */
        ask(threads);
    claim_drop(&asking);
}
