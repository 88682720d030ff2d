#include "span/span.h"

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "os/os.h"
#include "span/limit.h"
#include "span/purge.h"
#include "span/superslab.h"

struct lock span_lock = LOCK_INITIALIZER(LOCK_SPAN);

struct span_stats span_totals;

/* Bytes of a free run that do not count yet (limit.h): units that were written before do. */
static size_t new_bytes(const struct superslab *s, unsigned first, size_t units)
{
    return (size_t)count_ones128(superslab_run_mask(first, units) & ~s->dirty) << UNIT_SHIFT;
}

/* For units that are in `s`, or begin there; they have `bytes` that do not count yet. False: that would be beyond the
 * hard limit. */
static bool charge(const struct superslab *s, size_t bytes, bool new)
{
    if (!limit_allows(limit_charged() + bytes))
        return false;
    limit_charge(bytes);
    enum span_stage stage = new ? SPAN_NEW : bytes == 0 ? SPAN_WARM : s->used != 0 ? SPAN_PARTLY : SPAN_EMPTY;
    owner_add(&span_totals.served[stage], 1u);
    return true;
}

/* Its bytes are charged. */
static void *use_run(struct superslab *s, unsigned first, size_t units, bool *zero)
{
    bits128 mask = superslab_run_mask(first, units);
    ASSERT((s->used & mask) == 0);
    purge_note_taken(s, mask);
    superslab_set_used(s, s->used | mask);
    *zero = *zero && (s->dirty & mask) == 0;
    span_totals.used_bytes += units << UNIT_SHIFT;
    return superslab_base(superslab_index(s)) + ((size_t)first << UNIT_SHIFT);
}

/* Makes neighbouring superslabs usable, each stretch that is not yet with one call; *new: there was one. */
static bool commit_run(size_t index, size_t count, bool *new)
{
    size_t end = index + count;
    *new = false;
    while (index < end) {
        size_t stretch = 0;
        while (index + stretch < end && !superslab_at(index + stretch)->committed)
            stretch++;
        if (stretch > 0 && !superslab_commit(index, stretch))
            return false;
        *new |= stretch > 0;
        span_totals.committed_bytes += stretch << SUPERSLAB_SHIFT;
        index += stretch + 1;
    }
    return true;
}

static bool reserve_more(size_t superslabs)
{
    void *at;
    size_t got;
    if (superslabs > SIZE_MAX >> (SUPERSLAB_SHIFT + 1) || !arena_grow(superslabs << SUPERSLAB_SHIFT, &at, &got))
        return false;
    superslab_add(arena_unit(at) / SUPERSLAB_UNITS, got >> SUPERSLAB_SHIFT);
    span_totals.reserved_bytes += got;
    return true;
}

/* Neighbouring free superslabs, from the range as it is or after it has grown. */
static size_t find_or_reserve_run(size_t count, size_t align)
{
    size_t index = superslab_find_run(count, align);
    if (index == SIZE_MAX && reserve_more(count + align - 1))
        index = superslab_find_run(count, align);
    return index;
}

static void *take_short(unsigned units, unsigned align, bool *zero)
{
    unsigned first = 0;
    bool new = false;
    struct superslab *s = superslab_find(units, align, &first);
    if (s == NULL) {
        size_t index = find_or_reserve_run(1, 1);
        if (index == SIZE_MAX)
            return NULL;
        s = superslab_at(index);
        first = 0;
        if (!commit_run(index, 1, &new))
            return NULL;
    }
    return charge(s, new_bytes(s, first, units), new) ? use_run(s, first, units, zero) : NULL;
}

static size_t new_bytes_of_long(size_t index, size_t units)
{
    size_t bytes = 0;
    for (size_t i = index; units > 0; i++) {
        size_t here = min_size(units, SUPERSLAB_UNITS);
        bytes += new_bytes(superslab_at(i), 0, here);
        units -= here;
    }
    return bytes;
}

static void *take_long(size_t units, size_t align, bool *zero)
{
    size_t count = divide_up(units, SUPERSLAB_UNITS);
    bool new;
    size_t index = find_or_reserve_run(count, max_size(1, align / SUPERSLAB_UNITS));
    if (index == SIZE_MAX)
        return NULL;
    if (!commit_run(index, count, &new) || !charge(superslab_at(index), new_bytes_of_long(index, units), new))
        return NULL;
    for (size_t i = index; i < index + count; i++) {
        size_t here = min_size(units, SUPERSLAB_UNITS);
        use_run(superslab_at(i), 0, here, zero);
        units -= here;
    }
    return superslab_base(index);
}

void *span_take(size_t units, size_t align, bool *zero)
{
    *zero = true;
    lock_take(&span_lock);
    void *at = NULL;
    if (limit_allows(span_totals.used_bytes + (units << UNIT_SHIFT))) /* else the range need not grow for it */
        at = units <= SUPERSLAB_UNITS && align <= SUPERSLAB_UNITS
                 ? take_short((unsigned)units, (unsigned)align, zero)
                 : take_long(units, align, zero);
    lock_drop(&span_lock);
    return at;
}

/* The part of [at, at + units) that lies in at's superslab, as its record, first unit and length. */
static struct superslab *first_part(const char *at, size_t units, unsigned *first, size_t *here)
{
    size_t unit = arena_unit(at);
    *first = (unsigned)(unit % SUPERSLAB_UNITS);
    *here = min_size(units, SUPERSLAB_UNITS - *first);
    return superslab_at(unit / SUPERSLAB_UNITS);
}

void span_give(void *at, size_t units, bool dirty)
{
    uint64_t now = clock_now_ms();
    char *p = at;
    lock_take(&span_lock);
    span_totals.used_bytes -= units << UNIT_SHIFT;
    while (units > 0) {
        unsigned first;
        size_t here;
        struct superslab *s = first_part(p, units, &first, &here);
        bits128 mask = superslab_run_mask(first, here);
        ASSERT((s->used & mask) == mask);
        if (dirty || s->huge) {
            purge_note_dirty(s, mask, now);
        } else {
            superslab_set_dirty(s, s->dirty & ~mask);
            limit_discharge(here << UNIT_SHIFT);
        }
        superslab_set_used(s, s->used & ~mask);
        p += here << UNIT_SHIFT;
        units -= here;
    }
    lock_drop(&span_lock);
}

bool span_extend(void *end, size_t units, bool *zero)
{
    bool taken = false;
    lock_take(&span_lock);
    if (arena_words(end) < arena.limit) {
        unsigned first;
        size_t here;
        bool new;
        struct superslab *s = first_part(end, units, &first, &here);
        if (here == units && s->reserved && (s->used & superslab_run_mask(first, units)) == 0 &&
            commit_run(superslab_index(s), 1, &new) && charge(s, new_bytes(s, first, units), new)) {
            use_run(s, first, units, zero);
            taken = true;
        }
    }
    lock_drop(&span_lock);
    return taken;
}

void span_abandon(size_t units)
{
    lock_take(&span_lock);
    span_totals.used_bytes -= units << UNIT_SHIFT;
    span_totals.committed_bytes -= units << UNIT_SHIFT;
    limit_discharge(units << UNIT_SHIFT);
    lock_drop(&span_lock);
}

void span_stats(struct span_stats *stats)
{
    lock_take(&span_lock);
    *stats = span_totals;
    stats->dirty_bytes = span_dirty_bytes();
    stats->waits = span_lock.waits;
    lock_drop(&span_lock);
}

size_t span_dirty_bytes(void)
{
    return superslab_dirty_units() << UNIT_SHIFT;
}

size_t span_resident_bytes(void)
{
    lock_take(&span_lock);
    size_t count = superslab_count();
    lock_drop(&span_lock);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (load_relaxed(&superslab_at(i)->committed))
            bytes += os_resident(superslab_base(i), SUPERSLAB_SIZE);
    return bytes;
}
