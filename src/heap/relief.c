#include "heap/relief.h"

#include <errno.h>

#include "base/lock.h"
#include "heap/absent.h"
#include "heap/budget.h"
#include "heap/interrupt.h"
#include "heap/keeper.h"
#include "heap/life.h"
#include "heap/shelf.h"
#include "heap/sleeper.h"
#include "large/large.h"
#include "os/os.h"
#include "span/span.h"

size_t relief_give_back(struct heap *own)
{
    if (own != NULL)
        life_empty(own);
    if (keeper_now() != NULL)
        keeper_now()->give_back();
    life_clean_all();
    large_evict_all();
    return span_purge_all();
}

COLD bool relief_for(struct heap *own, size_t bytes)
{
    if (limit_is_short_of(bytes))
        (void)relief_give_back(own);
    return limit_is_hard();
}

/* An interrupted hot_malloc may be in the middle of charging the view; then the pressure stays, for the next that takes
 * units. */
void relief_hurry(struct heap *heap)
{
    if (!interrupt_holds_magazines(heap))
        budget_hurry(heap);
}

static void give_back_hard(struct heap *own)
{
    (void)shelf_purge_all(own);
    (void)sleeper_empty_all(own);
    (void)span_purge_all();
}

bool relief_at_heartbeat(struct heap *own, struct limit_notice *notice)
{
    if (!limit_presses())
        return false;
    if (limit_begin_learning())
        limit_learn(os_memory_limit());
    if (!limit_begin_relief(absent_bytes()))
        return false;
    (void)relief_give_back(NULL);
    /* Between the handlers of a fork this thread holds every lock, though it does not notice. */
    if (lock_passes())
        return false;
    size_t absent = absent_bytes();
    if (limit_begin_hard_relief(absent)) {
        give_back_hard(own);
        absent = absent_bytes();
    }
    return limit_begin_notice(notice, absent);
}

void relief_tell(const struct limit_notice *notice)
{
    int saved = errno;
    notice->listener.callback(notice->held, notice->limit, notice->listener.data);
    errno = saved;
    limit_end_notice();
}
