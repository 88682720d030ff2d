#include "heap/heartbeat.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "config/policy.h"
#include "heap/budget.h"
#include "heap/classes.h"
#include "heap/crowd.h"
#include "heap/events.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/purger.h"
#include "heap/shelf.h"
#include "heap/sleeper.h"
#include "large/large.h"
#include "span/huge.h"
#include "span/span.h"

struct heap_events heap_events;

/* Some thread looks for old large blocks at least so often. */
enum { LARGE_LOOK_MS = 250 };

/* Of free units, and of holes, a heartbeat gives back no more at once: up to a millisecond of work each. The next goes on, and when all units
 * have gone that are old enough the heap begins to look for holes; the purger's thread does not stop. */
#define PURGE_MOST (8 * MIB)

/* One class a beat: a magazine that the door has not seen since the last round gives everything back, and so does one that
 * is too wide. */
static void look_at_next_magazine(struct heap *heap)
{
    unsigned class = heap->trim_next;
    heap->trim_next = (class + 1) % SIZE_CLASSES;
    magazine_audit(heap, class);
    if (!heap->shelf[class].touched || magazine_is_too_wide(heap, class))
        magazine_trim(heap, class);
    if (heap->shelf[class].touched) /* most lie on a page that nobody has written to */
        heap->shelf[class].touched = false;
}

/* Large blocks are kept for a time of their own, which may be shorter than that of pages. Of threads that come at once one looks; who
 * has read the clock before that one looks once too often. */
static void evict_old(uint64_t now)
{
    static uint64_t looked_ms;
    uint64_t last = load_relaxed(&looked_ms);
    if (now - last > min_size(load_relaxed(&policy.purge_ms) / LOOKS_PER_DELAY, LARGE_LOOK_MS)
        && __atomic_compare_exchange_n(&looked_ms, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        large_evict_old(now);
}

static void give_back_old(struct heap *heap, uint64_t now)
{
    evict_old(now);
    if (now - heap->aged_ms > load_relaxed(&policy.purge_ms) / LOOKS_PER_DELAY && span_purge_old(now, PURGE_MOST) < PURGE_MOST) {
        heap->aged_ms = now;
        shelf_begin_look(heap, now);
    }
    shelf_purge_cool(heap, now, PURGE_MOST);
}

void heartbeat(struct heap *heap)
{
    int64_t position = budget_position(heap);
    heap->beat_bytes = (size_t)(position - heap->beat_at);
    heap->beat_at = position;
    heap->freed = 0;
    tally(heap, COUNT_HEARTBEATS);
    if (heap->view.budget < 0)
        budget_grant(heap);
    mail_post_all(heap);
    orphan_tidy();
    if (mail_waits(heap))
        mail_collect(heap, true);
    look_at_next_magazine(heap);
    classes_leave_closed(heap);
    life_clean_one();
    sleeper_look(heap);
    crowd_consider();
    if (heap_events.heartbeat != NULL) /* who asks what is held is to see what was held until now */
        heap_events.heartbeat(heap);
    uint64_t now = clock_now_ms();
    heap->beat_ms = now;
    give_back_old(heap, now);
    huge_consider(now);
    if (life_heaps()->next != NULL) /* who is alone knows all of it */
        purger_note_beat(heap);
    purger_consider(heap);
}
