#include "span/limit.h"

#include <pthread.h>
#include <stdint.h>

#include "arena/meta.h"
#include "base/bits.h"
#include "base/clock.h"
#include "config/policy.h"
#include "span/span.h"

/* Below this nobody asks for the limit of the control group: small processes open no files. */
#define LEARN_FROM (32 * MIB)

/* Of the group's limit, this part is left to what is not the heap's: stacks, libraries, page tables, other processes.
 * With the whole of it for the heap the kernel's killer comes before the soft limit is reached (decision 19). */
enum { REST_SHARE = 8 };

/* Of the soft limit, so much must be newly charged before memory is given back again: what a program that lives just
 * above its limit pays is in proportion to the memory that it takes. */
enum { RELIEF_SHARE = 64 };
#define RELIEF_LEAST (1 * MIB)

/* Just below it, what is there is summed up again after so much. */
enum { LOOK_SHARE = 1024 };
#define LOOK_LEAST (64 * KIB)

enum { NOTICE_MS = 100 }; /* between two calls of the listener */

bool limit_pressed;

size_t limit_bytes;       /* of units */
static size_t moving;     /* of these, in runs whose pages are on their way to another */
static size_t ever;       /* charged in sum since the start */
static size_t relief_due; /* value of `ever` from which the soft limit is looked at again */
static size_t fill_due;   /* so is it when this many bytes of pages got memory; 0: they are not counted */
static size_t filled;     /* that did since the last look, if they are counted */
static bool learning;     /* a thread is reading the control group's limit */

static struct limit_listener listener;
static bool told;          /* of this crossing */
static uint64_t told_ms;   /* when, the last time */
static uintptr_t telling;  /* pthread_self() of the thread that calls the listener, else 0 */

static size_t soft_limit(void)
{
    return policy.soft_limit != 0 ? policy.soft_limit : LEARN_FROM;
}

static size_t hard_limit(void)
{
    size_t hard = load_relaxed(&policy.hard_limit);
    return hard != 0 ? hard : SIZE_MAX;
}

/* What counts when units hold `bytes`. The longer run of a move comes before the shorter goes: never negative. */
static size_t held_with(size_t bytes)
{
    return bytes - moving + meta_committed();
}

bool limit_allows(size_t bytes)
{
    return held_with(bytes) <= hard_limit();
}

void limit_charge(size_t bytes)
{
    size_t soft = soft_limit();
    if (held_with(limit_bytes) <= soft)
        told = false;
    store_relaxed(&limit_bytes, limit_bytes + bytes);
    ever += bytes;
    if (UNLIKELY(held_with(limit_bytes) > soft) && ever >= relief_due)
        store_relaxed(&limit_pressed, true);
}

void limit_discharge(size_t bytes)
{
    store_relaxed(&limit_bytes, limit_bytes - bytes);
}

/* Away from the soft limit nothing is counted: all threads would write here. */
void limit_note_filled(size_t bytes)
{
    size_t due = load_relaxed(&fill_due);
    if (UNLIKELY(due != 0) && add_relaxed(&filled, bytes) + bytes >= due)
        store_relaxed(&limit_pressed, true);
}

size_t limit_charged(void)
{
    return limit_bytes;
}

static void look_after(size_t bytes)
{
    relief_due = ever + bytes;
    store_relaxed(&filled, (size_t)0);
    store_relaxed(&fill_due, bytes);
}

static bool is_look_due(void)
{
    return ever >= relief_due || (fill_due != 0 && load_relaxed(&filled) >= fill_due);
}

/* The next charge is looked at. */
static void look_again(void)
{
    told = false;
    look_after(0);
}

void limit_set(size_t soft, size_t hard)
{
    lock_take(&span_lock);
    policy.soft_limit = soft;
    store_relaxed(&policy.hard_limit, hard);
    look_again();
    lock_drop(&span_lock);
}

size_t limit_held(void)
{
    lock_take(&span_lock);
    size_t held = held_with(limit_bytes);
    lock_drop(&span_lock);
    return held;
}

bool limit_is_short_of(size_t bytes)
{
    size_t hard = hard_limit();
    return hard != SIZE_MAX && bytes <= hard && limit_held() > hard - bytes;
}

void limit_begin_move(size_t bytes)
{
    lock_take(&span_lock);
    moving += bytes;
    lock_drop(&span_lock);
}

void limit_end_move(size_t bytes)
{
    lock_take(&span_lock);
    moving -= bytes;
    lock_drop(&span_lock);
}

bool limit_begin_learning(void)
{
    lock_take(&span_lock);
    bool mine = policy.soft_limit == 0 && !learning;
    learning |= mine;
    lock_drop(&span_lock);
    return mine;
}

void limit_learn(size_t group_limit)
{
    size_t soft = group_limit == SIZE_MAX ? SIZE_MAX : group_limit - group_limit / REST_SHARE;
    lock_take(&span_lock);
    if (policy.soft_limit == 0) /* the program may have set it meanwhile */
        policy.soft_limit = max_size(soft, 1);
    learning = false;
    lock_drop(&span_lock);
}

/* What counts for the soft limit. */
static size_t present(size_t absent)
{
    size_t held = held_with(limit_bytes);
    return held > absent ? held - absent : 0;
}

/* The bound is beyond the limit. Is what is there? */
static bool look(size_t absent)
{
    size_t soft = soft_limit();
    size_t now = present(absent);
    bool passed = now > soft;
    if (passed)
        look_after(max_size(soft / RELIEF_SHARE, RELIEF_LEAST));
    else /* half of what is left may be charged, the other half get memory */
        look_after(max_size((soft - now) / 2, max_size(soft / LOOK_SHARE, LOOK_LEAST)));
    told = told && passed;
    return passed;
}

bool limit_begin_relief(size_t absent)
{
    bool passed = false;
    lock_take(&span_lock);
    if (policy.soft_limit != 0 && held_with(limit_bytes) <= soft_limit())
        store_relaxed(&fill_due, (size_t)0);
    else if (policy.soft_limit != 0 && is_look_due())
        passed = look(absent);
    store_relaxed(&limit_pressed, false);
    lock_drop(&span_lock);
    return passed;
}

void limit_set_listener(struct limit_listener new_listener)
{
    lock_take(&span_lock);
    listener = new_listener;
    look_again();
    lock_drop(&span_lock);
}

bool limit_begin_notice(struct limit_notice *notice, size_t absent)
{
    uint64_t now = clock_now_ms();
    lock_take(&span_lock);
    size_t held = present(absent);
    size_t soft = soft_limit();
    bool due = listener.callback != NULL && held > soft && !told && load_acquire(&telling) == 0
               && (told_ms == 0 || now - told_ms >= NOTICE_MS);
    if (due) {
        told = true;
        told_ms = now;
        store_relaxed(&telling, (uintptr_t)pthread_self());
        *notice = (struct limit_notice){listener, held, soft};
    }
    lock_drop(&span_lock);
    return due;
}

void limit_end_notice(void)
{
    store_release(&telling, (uintptr_t)0);
}

void limit_after_fork(void)
{
    moving = 0;
    learning = false;
    if (telling != (uintptr_t)pthread_self())
        telling = 0;
}
