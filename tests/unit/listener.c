#include "listener.h"

#include "check.h"
#include "hakmem.h"
#include "large/bigcache.h"
#include "span/span.h"

size_t listener_calls;
size_t listener_last_held;
size_t listener_last_limit;

void listener_set(void (*callback)(size_t held, size_t limit, void *data))
{
    hak_set_limit_callback(callback, &listener_calls);
}

void listener_count(size_t held, size_t limit, void *data)
{
    struct span_stats stats;
    span_stats(&stats); /* takes the span lock, which must be free here */
    CHECK(data == &listener_calls);
    CHECK(held > limit);
    CHECK(bigcache_bytes() == 0 && stats.dirty_bytes == 0);
    listener_last_held = held;
    listener_last_limit = limit;
    listener_calls++;
}
