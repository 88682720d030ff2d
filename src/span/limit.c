#include "span/limit.h"

#include <stdint.h>

#include "arena/meta.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/thread.h"
#include "config/policy.h"
#include "span/shards.h"

/* Below this nobody asks for the limit of the control group: small processes open no files. */
#define LEARN_FROM (32 * MIB)

/* Where it could not be read, it is asked for again when so much more was charged. */
#define LEARN_AGAIN (8 * MIB)

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

enum { NOTICE_MS = 100 }; /* between two calls of the listener; and between two hard reliefs, if it is not to be called */

bool limit_pressed;

size_t limit_bytes;       /* of units, but for `moves` */
static size_t relief_due; /* when so many were charged, in sum since the start, the soft limit is looked at again */
static size_t fill_due;   /* so is it when this many bytes of pages got memory; 0: they are not counted */
static size_t filled;     /* that did since the last look, if they are counted */
static bool learning;     /* a thread is reading the control group's limit */

static bool is_set;       /* by the program */

/* Runs whose pages are on their way to another. The last is of all for which there was no place. */
enum { MOVES = 16 };

static struct move {
    uintptr_t thread; /* its thread_self() */
    size_t bytes;     /* 0: none */
} moves[MOVES + 1];

/* A thread that charges a run to which it will move the pages of another: there is memory for one of them. */
static uintptr_t borrower; /* its thread_self(); 0: none */
static size_t loan;        /* bytes of the other run; 0 if there is no borrower, who alone writes it */

static struct limit_listener listener;
static bool told;          /* of this crossing */
static uint64_t told_ms;   /* when, the last time */
static uint64_t hard_ms;   /* the last hard relief; 0: there was none */
static uintptr_t telling;  /* thread_self() of the thread that calls the listener, else 0 */

static size_t soft_limit(void)
{
    size_t soft = load_relaxed(&policy.soft_limit);
    return soft != 0 ? soft : LEARN_FROM;
}

static size_t hard_limit(void)
{
    size_t hard = load_relaxed(&policy.hard_limit);
    return hard != 0 ? hard : SIZE_MAX;
}

bool limit_is_hard(void)
{
    return hard_limit() != SIZE_MAX;
}

/* What counts, of units and metadata. */
static size_t held(void)
{
    return load_relaxed(&limit_bytes) + meta_committed();
}

static size_t own_loan(void)
{
    return load_relaxed(&borrower) == thread_self() ? loan : 0;
}

bool limit_allows(size_t bytes)
{
    size_t hard = hard_limit();
    return hard == SIZE_MAX || held() + bytes - own_loan() <= hard;
}

/* Charged in sum since the start. */
static size_t ever(void)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < shards_count(); i++)
        bytes += load_relaxed(&span_shards[i].charged_bytes);
    return bytes;
}

/* Returns what units held before; SIZE_MAX: no more, by a limit of so many bytes of units. */
static size_t add_below(size_t bytes, size_t most)
{
    size_t before = load_relaxed(&limit_bytes);
    do {
        if (before + bytes > most)
            return SIZE_MAX;
    } while (!__atomic_compare_exchange_n(&limit_bytes, &before, before + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return before;
}

static size_t add(size_t bytes)
{
    size_t hard = hard_limit();
    if (bytes == 0)
        return load_relaxed(&limit_bytes);
    if (LIKELY(hard == SIZE_MAX))
        return add_relaxed(&limit_bytes, bytes);
    size_t meta = meta_committed();
    size_t most = hard > meta ? hard - meta : 0;
    return add_below(bytes, most + min_size(own_loan(), SIZE_MAX - most));
}

bool limit_charge(struct span_shard *shard, size_t bytes)
{
    size_t soft = soft_limit();
    size_t meta = meta_committed();
    size_t before = add(bytes);
    if (before == SIZE_MAX)
        return false;
    owner_add(&shard->charged_bytes, bytes);
    if (UNLIKELY(load_relaxed(&told)) && before + meta <= soft)
        store_relaxed(&told, false);
    if (UNLIKELY(before + bytes + meta > soft) && before + bytes + meta - own_loan() > soft && ever() >= load_relaxed(&relief_due))
        store_relaxed(&limit_pressed, true);
    return true;
}

void limit_discharge(size_t bytes)
{
    if (bytes != 0)
        sub_relaxed(&limit_bytes, bytes);
}

/* Away from the soft limit nothing is counted: all threads would write here. */
void limit_note_filled(size_t bytes)
{
    size_t due = load_relaxed(&fill_due);
    if (UNLIKELY(due != 0) && add_relaxed(&filled, bytes) + bytes >= due)
        store_relaxed(&limit_pressed, true);
}

static void look_after(size_t bytes)
{
    store_relaxed(&relief_due, ever() + bytes);
    store_relaxed(&filled, (size_t)0);
    store_relaxed(&fill_due, bytes);
}

static bool is_look_due(void)
{
    return ever() >= relief_due || (fill_due != 0 && load_relaxed(&filled) >= fill_due);
}

/* The next charge is looked at. */
static void look_again(void)
{
    store_relaxed(&told, false);
    look_after(0);
}

/* With all locks: who has looked at the old limit has charged. */
void limit_set(size_t soft, size_t hard)
{
    span_lock_all();
    store_relaxed(&policy.soft_limit, soft);
    store_relaxed(&policy.hard_limit, hard);
    is_set = true;
    look_again();
    span_unlock_all();
}

bool limit_is_set(void)
{
    return is_set;
}

size_t limit_held(void)
{
    lock_take(&shards_pool()->lock);
    size_t bytes = held();
    lock_drop(&shards_pool()->lock);
    return bytes;
}

bool limit_is_short_of(size_t bytes)
{
    size_t hard = hard_limit();
    if (hard == SIZE_MAX || bytes > hard)
        return false;
    /* Whole units and pages are charged, and by some one more; in the hardened library a page behind. */
    size_t step = units_per_page() << UNIT_SHIFT;
    size_t charged = min_size(align_up(bytes, step) + (HARDENED ? 2 : 1) * step, hard);
    return limit_held() > hard - charged;
}

bool limit_borrow(size_t bytes)
{
    uintptr_t nobody = 0;
    if (!__atomic_compare_exchange_n(&borrower, &nobody, thread_self(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    store_relaxed(&loan, bytes);
    return true;
}

void limit_repay(void)
{
    store_relaxed(&loan, (size_t)0);
    store_release(&borrower, (uintptr_t)0);
}

unsigned limit_begin_move(size_t bytes)
{
    unsigned number = 0;
    lock_take(&shards_pool()->lock);
    while (number < MOVES && moves[number].bytes != 0)
        number++;
    moves[number].thread = number < MOVES ? thread_self() : 0;
    moves[number].bytes += bytes;
    sub_relaxed(&limit_bytes, bytes);
    lock_drop(&shards_pool()->lock);
    return number;
}

void limit_end_move(unsigned number, size_t bytes)
{
    lock_take(&shards_pool()->lock);
    moves[number].bytes -= bytes;
    add_relaxed(&limit_bytes, bytes);
    lock_drop(&shards_pool()->lock);
}

bool limit_begin_learning(void)
{
    lock_take(&shards_pool()->lock);
    bool mine = policy.soft_limit == 0 && !learning;
    learning |= mine;
    lock_drop(&shards_pool()->lock);
    return mine;
}

void limit_learn(size_t group_limit)
{
    size_t soft = group_limit == SIZE_MAX ? SIZE_MAX : group_limit - group_limit / REST_SHARE;
    lock_take(&shards_pool()->lock);
    if (group_limit == 0)
        store_relaxed(&relief_due, ever() + LEARN_AGAIN);
    else if (policy.soft_limit == 0) /* the program may have set it meanwhile */
        store_relaxed(&policy.soft_limit, max_size(soft, 1));
    learning = false;
    lock_drop(&shards_pool()->lock);
}

/* What counts for the soft limit. */
static size_t present(size_t absent)
{
    size_t bytes = held();
    return bytes > absent ? bytes - absent : 0;
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
    if (!passed)
        store_relaxed(&told, false);
    return passed;
}

bool limit_begin_relief(size_t absent)
{
    bool passed = false;
    lock_take(&shards_pool()->lock);
    store_relaxed(&limit_pressed, false); /* first: what another charges meanwhile is seen below, or presses again */
    if (policy.soft_limit != 0 && held() <= soft_limit())
        store_relaxed(&fill_due, (size_t)0);
    else if (policy.soft_limit != 0 && is_look_due())
        passed = look(absent);
    lock_drop(&shards_pool()->lock);
    return passed;
}

void limit_set_listener(struct limit_listener new_listener)
{
    lock_take(&shards_pool()->lock);
    listener = new_listener;
    look_again();
    lock_drop(&shards_pool()->lock);
}

/* `last_ms`: 0 if there was none. */
static bool is_long_ago(uint64_t last_ms, uint64_t now)
{
    return last_ms == 0 || now - last_ms >= NOTICE_MS;
}

static bool is_notice_due(uint64_t now)
{
    return listener.callback != NULL && !load_relaxed(&told) && load_acquire(&telling) == 0 && is_long_ago(told_ms, now);
}

bool limit_begin_hard_relief(size_t absent)
{
    lock_take(&shards_pool()->lock);
    uint64_t now = clock_now_ms();
    bool due = present(absent) > soft_limit() && (is_long_ago(hard_ms, now) || is_notice_due(now));
    if (due)
        hard_ms = now;
    lock_drop(&shards_pool()->lock);
    return due;
}

bool limit_begin_notice(struct limit_notice *notice, size_t absent)
{
    lock_take(&shards_pool()->lock);
    uint64_t now = clock_now_ms();
    size_t bytes = present(absent);
    size_t soft = soft_limit();
    bool due = bytes > soft && is_notice_due(now);
    if (due) {
        store_relaxed(&told, true);
        told_ms = now;
        store_relaxed(&telling, thread_self());
        *notice = (struct limit_notice){listener, bytes, soft};
    }
    lock_drop(&shards_pool()->lock);
    return due;
}

void limit_end_notice(void)
{
    store_release(&telling, (uintptr_t)0);
}

void limit_end_own_notice(void)
{
    if (load_relaxed(&telling) == thread_self())
        limit_end_notice();
}

void limit_after_fork(void)
{
    for (struct move *move = moves; move <= moves + MOVES; move++) {
        if (move->thread == thread_self())
            continue;
        limit_bytes += move->bytes;
        move->bytes = 0;
    }
    learning = false;
    if (borrower != thread_self())
        borrower = loan = 0;
    if (telling != thread_self())
        telling = 0;
}
