#include "span/huge.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "config/policy.h"
#include "os/os.h"
#include "span/shards.h"
#include "span/span.h"

/* Smaller processes have none. */
#define HUGE_FROM (16 * MIB)

/* A superslab has settled when it was full at so many passes in a row, each PASS_MS after the one before. Those of one huge page become
 * it together; each is split by itself. */
enum { SETTLED = 2, PASS_MS = 250 };

/* Of many superslabs a pass sees a part: so many at least, and at most. */
enum { PASS_SHARE = 32, PASS_LEAST = 512, PASS_MOST = 4096 };

/* Between two calls of the kernel lies this many times what the first took: up to some milliseconds, where a virtual machine's
 * host has yet to find the memory; more when it came to nothing. */
enum { PAUSE = 8, PAUSE_IN_VAIN = 64, PAUSE_MOST_MS = 10000 }; /* a process that is stopped within the call takes any time */

/* What a superslab's `filled` counts. */
#define FILLED_STEP ((size_t)4 * KIB)

/* The kernel makes a mapping of each stretch of superslabs that are alike, of the 65,530 that a process may have. */
enum { STRETCHES_MOST = 8192 };

static size_t next_pass; /* the superslab with which the next pass begins */
static size_t passed;      /* so many superslabs has the last one seen */
static uint64_t pass_ms;   /* when it was */
static uint64_t pause_ms;  /* until then none is looked for; UINT64_MAX: until the next pass, or the end of a call */
static size_t stretches;   /* ends of stretches of huge ones */
static bool unavailable;
size_t huge_filled;

static bool is_huge(size_t index)
{
    return index < superslab_count() && superslab_at(index)->huge;
}

static size_t ends_around(size_t index)
{
    return (size_t)(is_huge(index) != is_huge(index + 1)) + (index > 0 && is_huge(index) != is_huge(index - 1));
}

static void set_huge(struct superslab *s, bool huge)
{
    size_t index = superslab_index(s);
    stretches -= ends_around(index);
    store_relaxed(&s->huge, huge);
    stretches += ends_around(index);
}

static void set_filled(struct superslab *s, size_t bytes)
{
    size_t before = s->filled * FILLED_STEP;
    store_relaxed(&s->filled, (uint16_t)(bytes / FILLED_STEP));
    store_relaxed(&huge_filled, huge_filled - before + s->filled * FILLED_STEP);
}

static bool is_wanted(void)
{
    return policy.huge == HUGE_AUTO && !load_relaxed(&unavailable) && os_huge_page_size() == HUGE_SIZE;
}

static bool is_pass_due(uint64_t now_ms)
{
    return clock_has_passed(now_ms, load_relaxed(&pass_ms), PASS_MS);
}

static bool is_full(const struct superslab *s)
{
    return s->committed && ~s->used == 0 && s->purging == 0;
}

static void pass(void)
{
    size_t count = superslab_count();
    passed = min_size(count, min_size(max_size(count / PASS_SHARE, PASS_LEAST), PASS_MOST));
    for (size_t looks = passed; looks > 0; looks--) {
        struct superslab *s = superslab_at(next_pass++ % count);
        if (!is_full(s))
            s->settled = 0;
        else if (s->settled < SETTLED)
            s->settled++;
    }
}

static bool has_settled(const struct superslab *s)
{
    return s->settled == SETTLED && is_full(s);
}

/* Are the superslabs from `index` on those of one page, have all settled, and are not all huge? One may be, of a page that was split. */
static bool is_settled_page(size_t index)
{
    if (index % HUGE_SUPERSLABS != 0 || index + HUGE_SUPERSLABS > superslab_count())
        return false;
    bool all_huge = true;
    for (size_t i = index; i < index + HUGE_SUPERSLABS; i++) {
        if (!has_settled(superslab_at(i)))
            return false;
        all_huge = all_huge && superslab_at(i)->huge;
    }
    return !all_huge;
}

/* Among those of the last pass, the first of which lie the longest: the index of a page's first superslab. SIZE_MAX: there is none. */
static size_t find_settled(void)
{
    size_t count = superslab_count();
    for (size_t i = passed; i > 0; i--) {
        size_t index = (next_pass - i) % count;
        if (is_settled_page(index))
            return index;
    }
    return SIZE_MAX;
}

/* Whether or not it was huge: the kernel may make it so. The pool is locked, and the superslab's shard. */
static void forbid(struct superslab *s)
{
    if (s->huge)
        set_huge(s, false);
    os_forbid_huge_pages(superslab_base(superslab_index(s)), SUPERSLAB_SIZE);
}

/* A superslab of a page that was to become huge. */
struct half {
    size_t resident; /* bytes of it */
    bool was_huge;
};

/* What is not in use is counted by the span layer, which knows. */
void huge_bound_filled(struct superslab *s)
{
    size_t used = (size_t)count_ones128(s->used & ~s->purging) << UNIT_SHIFT;
    if (s->filled * FILLED_STEP > used)
        set_filled(s, used);
}

/* What did not count as absent before does not now. */
static void note_filled(struct superslab *s, size_t bytes)
{
    set_filled(s, min_size(s->filled * FILLED_STEP + bytes, SUPERSLAB_SIZE));
    huge_bound_filled(s);
    store_relaxed(&s->collapses, (uint8_t)(s->collapses + 1));
}

/* What was given back before it became part of a huge page has memory again, which nobody would count. */
static void purge_again(const struct superslab *s)
{
    (void)os_purge_pieces(superslab_base(superslab_index(s)), ~(s->used | s->dirty) | s->purging, UNIT_SHIFT);
}

/* If it was given back in part meanwhile, it is no longer marked as huge. */
static void conclude(struct superslab *s, const struct half *half, bool was_there, enum os_collapse came_to)
{
    bool was_split = !s->huge;
    s->settled = 0;
    if (came_to == OS_COLLAPSED && (!half->was_huge || was_split))
        note_filled(s, SUPERSLAB_SIZE - half->resident);
    if (was_there && (came_to != OS_COLLAPSED || was_split))
        forbid(s);
    else if (!was_there && !half->was_huge)
        set_huge(s, false); /* the kernel was told nothing: where a block that grows is to have huge pages, it may */
    if (came_to == OS_COLLAPSED && was_split)
        purge_again(s);
}

/* Without locks. If pages of a superslab are given back meanwhile, it is known as split by then. */
static COLD void collapse(size_t index, uint64_t now_ms)
{
    struct half halves[HUGE_SUPERSLABS];
    size_t in_memory = 0;
    for (size_t i = 0; i < HUGE_SUPERSLABS; i++) {
        halves[i].was_huge = is_huge(index + i);
        set_huge(superslab_at(index + i), true);
    }
    span_unlock_all();
    uint64_t begin_ns = clock_now_ns();
    for (size_t i = 0; i < HUGE_SUPERSLABS; i++)
        in_memory += halves[i].resident = os_resident(superslab_base(index + i), SUPERSLAB_SIZE);
    bool is_there = in_memory >= HUGE_SIZE / 100 * load_relaxed(&policy.huge_fill);
    enum os_collapse came_to = is_there ? os_collapse(superslab_base(index)) : OS_NOT_NOW;
    uint64_t took_ns = clock_now_ns() - begin_ns;
    span_lock_all();
    uint64_t pause = took_ns / 1000 * (came_to == OS_COLLAPSED ? PAUSE : PAUSE_IN_VAIN) / 1000;
    store_relaxed(&pause_ms, now_ms + took_ns / 1000000 + min_size(pause, PAUSE_MOST_MS));
    if (came_to == OS_NEVER)
        store_relaxed(&unavailable, true);
    for (size_t i = 0; i < HUGE_SUPERSLABS; i++)
        conclude(superslab_at(index + i), &halves[i], is_there, came_to);
}

static bool is_large(void)
{
    struct span_stats stats;
    span_look(&stats);
    return stats.used_bytes >= HUGE_FROM;
}

static void consider(uint64_t now_ms)
{
    if (is_pass_due(now_ms)) {
        store_relaxed(&pass_ms, now_ms);
        pass();
        if (pause_ms == UINT64_MAX)
            store_relaxed(&pause_ms, (uint64_t)0);
    }
    if (now_ms < pause_ms)
        return;
    bool may = is_large() && stretches < STRETCHES_MOST;
    size_t index = may ? find_settled() : SIZE_MAX;
    store_relaxed(&pause_ms, UINT64_MAX);
    if (index != SIZE_MAX)
        collapse(index, now_ms);
}

void huge_consider(uint64_t now_ms)
{
    if (!is_wanted() || (now_ms < load_relaxed(&pause_ms) && !is_pass_due(now_ms)))
        return;
    span_lock_all();
    consider(now_ms);
    span_unlock_all();
}

void huge_after_fork(void)
{
    pause_ms = 0;
}

static COLD void split(struct superslab *s)
{
    shards_lock_pool_too(shard_of(s));
    if (s->huge)
        forbid(s);
    huge_bound_filled(s);
    shards_unlock_pool_too(shard_of(s));
}

void huge_split(struct superslab *s)
{
    if (s->huge || s->filled > 0)
        split(s);
}

bool huge_is_at(const void *at)
{
    return load_relaxed(&superslab_of(at)->huge);
}

/* Of the superslab that the address is in. */
static char *end_of_superslab(const char *at)
{
    return superslab_base(superslab_index(superslab_of(at)) + 1);
}

bool huge_is_in(const void *at, size_t units)
{
    const char *end = (const char *)at + (units << UNIT_SHIFT);
    for (const char *p = at; p < end; p = end_of_superslab(p))
        if (huge_is_at(p))
            return true;
    return false;
}

void huge_forbid_others(char *at, size_t units)
{
    char *end = at + (units << UNIT_SHIFT);
    for (char *next; at < end; at = next) {
        next = end_of_superslab(at);
        if (!huge_is_at(at))
            os_forbid_huge_pages(at, (size_t)((next < end ? next : end) - at));
    }
}

void huge_split_at(const void *at)
{
    if (!huge_is_at(at))
        return;
    struct superslab *s = superslab_of(at);
    struct span_shard *locked = shards_lock_of(s);
    huge_split(s);
    lock_drop(&locked->lock);
}

void huge_split_in(const void *at, size_t units)
{
    const char *end = (const char *)at + (units << UNIT_SHIFT);
    for (const char *p = at; p < end; p = end_of_superslab(p))
        huge_split_at(p);
}

uint8_t huge_collapses_at(const void *at)
{
    return load_relaxed(&superslab_of(at)->collapses);
}

void huge_counts_again(const void *at, size_t bytes)
{
    struct superslab *s = superslab_of(at);
    if (bytes == 0 || load_relaxed(&s->filled) == 0)
        return;
    struct span_shard *locked = shards_lock_of(s);
    shards_lock_pool_too(locked);
    size_t filled = s->filled * FILLED_STEP;
    set_filled(s, filled - min_size(bytes, filled));
    shards_unlock_pool_too(locked);
    lock_drop(&locked->lock);
}
