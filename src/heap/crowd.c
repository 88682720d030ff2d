#include "heap/crowd.h"

#include <stdint.h>

#include "base/bits.h"
#include "heap/life.h"
#include "os/os.h"
#include "span/limit.h"
#include "span/span.h"

/* Fewer threads, or less memory in slabs and large blocks: nobody asks, no file is opened. */
enum { THREADS_LEAST = 16 };
#define HELD_LEAST (32 * MIB)

/* So many threads of each processor have the whole. */
enum { OF_PROCESSOR = 4 };

static uint32_t asked;
size_t crowd_processors;

size_t crowd_part(size_t bytes, size_t least)
{
    size_t most = load_relaxed(&crowd_processors);
    size_t threads = life_count();
    if (bytes <= least || threads / OF_PROCESSOR <= most)
        return bytes;
    return max_size(bytes / threads * most * OF_PROCESSOR, least);
}

void crowd_consider(void)
{
    if (LIKELY(load_relaxed(&asked) != 0) || life_count() < THREADS_LEAST || load_relaxed(&limit_bytes) < HELD_LEAST)
        return;
    if (exchange_acquire(&asked, 1u) == 0) {
        size_t processors = os_processors();
        store_relaxed(&crowd_processors, processors);
        span_spread(processors);
    }
}
