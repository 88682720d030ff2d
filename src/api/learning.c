#include "api/learning.h"

#include "api/decision_log.h"
#include "api/watch.h"
#include "base/atomic.h"
#include "config/policy.h"
#include "heap/events.h"
#include "learn/learn.h"
#include "learn/sites.h"

static void at_heartbeat(struct heap *heap)
{
    watch_beat();
    learn_beat(heap);
    if (UNLIKELY(load_relaxed(&policy_mode) == MODE_RESEARCH))
        decision_log();
}

void learning_start(void)
{
    learn_start();
    heap_events.heartbeat = at_heartbeat;
    heap_events.site = sites_of_request;
}
