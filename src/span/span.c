#include "span/span.h"

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "os/os.h"
#include "span/limit.h"
#include "span/purge.h"
#include "span/shards.h"
#include "span/superslab.h"

struct span_range span_range;

/* Bytes of a free run that do not count yet (limit.h): units that were written before do. */
static size_t new_bytes(const struct superslab *s, unsigned first, size_t units)
{
    return (size_t)count_ones128(superslab_run_mask(first, units) & ~s->dirty) << UNIT_SHIFT;
}

/* Units that are in `s`, or begin there, are about to be used; `bytes` of them did not count yet. */
static void count_served(const struct superslab *s, size_t bytes, bool new)
{
    enum span_stage stage = new ? SPAN_NEW : bytes == 0 ? SPAN_WARM : s->used != 0 ? SPAN_PARTLY : SPAN_EMPTY;
    owner_add(&shard_of(s)->served[stage], 1u);
}

/* Its bytes are charged. */
static void *use_run(struct superslab *s, unsigned first, size_t units, bool *zero)
{
    bits128 mask = superslab_run_mask(first, units);
    ASSERT((s->used & mask) == 0);
    purge_note_taken(s, mask);
    superslab_set_used(s, s->used | mask);
    *zero = *zero && (s->dirty & mask) == 0;
    owner_add(&shard_of(s)->used_bytes, units << UNIT_SHIFT);
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
        owner_add(&span_range.committed_bytes, stretch << SUPERSLAB_SHIFT);
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
    owner_add(&span_range.reserved_bytes, got);
    return true;
}

/* Neighbouring free superslabs for so many units, from the range as it is or after it has grown. */
static size_t find_or_reserve_run(size_t units, size_t align)
{
    size_t count = divide_up(units, SUPERSLAB_UNITS);
    size_t index = superslab_find_run(count, align, false);
    if (index == SIZE_MAX && limit_allows(units << UNIT_SHIFT) && reserve_more(count + align - 1))
        index = superslab_find_run(count, align, false);
    return index;
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

/* An alignment skips superslabs. As long as they are unusable, they and what follows them are mappings of their own, of the 65,530 that a process
 * may have: so they become usable with the run, if what they follow is. */
static size_t begin_of_gap(size_t index)
{
    enum { GAP_MOST = 64 };
    size_t first = index;
    while (first > 0 && index - first < GAP_MOST && superslab_at(first - 1)->reserved && !superslab_at(first - 1)->committed)
        first--;
    return first > 0 && superslab_at(first - 1)->committed ? first : index;
}

static bool commit_with_gap(size_t index, size_t count, bool *new)
{
    size_t first = begin_of_gap(index);
    return (first < index && commit_run(first, index - first + count, new)) || commit_run(index, count, new);
}

/* The superslabs from `index` on, which are wholly free. */
static void *take_run(size_t index, size_t units, bool *zero)
{
    size_t bytes = new_bytes_of_long(index, units);
    bool new;
    if (!limit_charge(shards_pool(), bytes))
        return NULL;
    if (!commit_with_gap(index, divide_up(units, SUPERSLAB_UNITS), &new)) {
        limit_discharge(bytes);
        return NULL;
    }
    count_served(superslab_at(index), bytes, new);
    for (size_t i = index; units > 0; i++) {
        size_t here = min_size(units, SUPERSLAB_UNITS);
        use_run(superslab_at(i), 0, here, zero);
        units -= here;
    }
    return superslab_base(index);
}

/* From superslabs that are wholly free. The pool is locked, and keeps them. Where the system makes no more usable, there may be some
 * that are. */
static void *take_whole(size_t units, size_t align, bool *zero)
{
    size_t superslabs = max_size(1, align / SUPERSLAB_UNITS);
    size_t index = find_or_reserve_run(units, superslabs);
    void *at = index != SIZE_MAX ? take_run(index, units, zero) : NULL;
    if (UNLIKELY(at == NULL && index != SIZE_MAX)) {
        size_t usable = superslab_find_run(divide_up(units, SUPERSLAB_UNITS), superslabs, true);
        at = usable != SIZE_MAX && usable != index ? take_run(usable, units, zero) : NULL;
    }
    return at;
}

struct request {
    struct span_run run;
    bool *zero;
};

/* From superslabs of one shard, which then belong to another; both are locked, if they are two. */
static void *take_here(struct span_shard *from, struct span_shard *to, const struct request *wanted, enum room_kind kind)
{
    struct place place = superslab_find(from, wanted->run.units, wanted->run.align, kind);
    struct superslab *s = place.superslab;
    if (s == NULL)
        return NULL;
    size_t bytes = new_bytes(s, place.first, wanted->run.units);
    if (!limit_charge(from, bytes))
        return NULL;
    count_served(s, bytes, false);
    if (from != to)
        superslab_move(s, to);
    return use_run(s, place.first, wanted->run.units, wanted->zero);
}

static void *take_from(struct span_shard *from, struct span_shard *own, const struct request *wanted, enum room_kind kind)
{
    if (load_relaxed(&from->fits[kind]) < wanted->run.units)
        return NULL;
    shards_lock_two(from, own);
    void *at = take_here(from, own, wanted, kind);
    lock_drop(&from->lock);
    lock_drop(&own->lock);
    return at;
}

/* What the others have, the pool last: pages first, then room in superslabs that are in use. */
static void *take_from_others(struct span_shard *own, const struct request *wanted)
{
    unsigned others = shards_count() - 1;
    unsigned self = (unsigned)(own - span_shards) - 1;
    for (int kind = ROOM_WARM; kind >= ROOM_ANY; kind--) {
        void *at = NULL;
        for (unsigned i = 1; at == NULL && i < others; i++)
            at = take_from(&span_shards[1 + (self + i) % others], own, wanted, (enum room_kind)kind);
        if (at == NULL)
            at = take_from(shards_pool(), own, wanted, (enum room_kind)kind);
        if (at != NULL)
            return at;
    }
    return NULL;
}

ALWAYS_INLINE void *take_warm(struct span_shard *shard, const struct request *wanted)
{
    return shard->dirty_units >= wanted->run.units ? take_here(shard, shard, wanted, ROOM_WARM) : NULL;
}

/* From one shard and, if that is the pool, from what is wholly free. */
static void *take_in(struct span_shard *shard, const struct request *wanted, enum room_kind kind)
{
    lock_take(&shard->lock);
    void *at = kind == ROOM_WARM ? take_warm(shard, wanted) : NULL;
    if (at == NULL)
        at = take_here(shard, shard, wanted, ROOM_ANY);
    if (at == NULL && shard == shards_pool())
        at = take_whole(wanted->run.units, 1, wanted->zero);
    lock_drop(&shard->lock);
    return at;
}

/* In the pool last: what another thread took out of an empty superslab meanwhile leaves room for more. */
static void *take_short(const struct request *wanted, enum room_kind kind)
{
    struct span_shard *own = shards_own();
    void *at = take_in(own, wanted, kind);
    if (at == NULL && own != shards_pool())
        at = take_from_others(own, wanted);
    if (at == NULL && own != shards_pool())
        at = take_in(shards_pool(), wanted, ROOM_WARM);
    return at;
}

void *span_take(size_t units, size_t align, bool *zero)
{
    *zero = true;
    if (units <= SUPERSLAB_UNITS && align <= SUPERSLAB_UNITS)
        return take_short(&(struct request){{(unsigned)units, (unsigned)align}, zero}, ROOM_WARM);
    lock_take(&shards_pool()->lock);
    void *at = take_whole(units, align, zero);
    lock_drop(&shards_pool()->lock);
    return at;
}

void *span_take_group(struct span_run *group, struct span_run fewer, bool *zero)
{
    const struct request all = {*group, zero};
    const struct request part = {fewer, zero};
    struct span_shard *own = shards_own();
    *zero = true;
    lock_take(&own->lock);
    void *at = take_warm(own, &all);
    if (at == NULL && (at = take_warm(own, &part)) != NULL)
        *group = fewer;
    lock_drop(&own->lock);
    return at != NULL ? at : take_short(&all, ROOM_ANY);
}

/* The part of [at, at + units) that lies in at's superslab, as its record, first unit and length. */
static struct superslab *first_part(const char *at, size_t units, unsigned *first, size_t *here)
{
    *first = (unsigned)(arena_unit(at) % SUPERSLAB_UNITS);
    *here = min_size(units, SUPERSLAB_UNITS - *first);
    return superslab_of(at);
}

void span_give(void *at, size_t units, bool dirty)
{
    uint64_t now = clock_now_ms();
    char *p = at;
    struct span_shard *locked = shards_lock_of(superslab_of(at));
    while (units > 0) {
        unsigned first;
        size_t here;
        struct superslab *s = first_part(p, units, &first, &here);
        if (locked != shard_of(s)) {
            lock_drop(&locked->lock);
            locked = shards_lock_of(s);
        }
        bits128 mask = superslab_run_mask(first, here);
        ASSERT((s->used & mask) == mask);
        owner_add(&locked->used_bytes, 0 - (here << UNIT_SHIFT));
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
    lock_drop(&locked->lock);
}

/* Units that follow a run, in a superslab of which all or some are free. */
static bool extend_in(struct superslab *s, unsigned first, size_t units, bool *zero)
{
    size_t bytes = new_bytes(s, first, units);
    bool new = false;
    if (!s->reserved || (s->used & superslab_run_mask(first, units)) != 0 || !limit_charge(shard_of(s), bytes))
        return false;
    if (!s->committed && !commit_run(superslab_index(s), 1, &new)) {
        limit_discharge(bytes);
        return false;
    }
    count_served(s, bytes, new);
    use_run(s, first, units, zero);
    return true;
}

bool span_extend(void *end, size_t units, bool *zero)
{
    if (arena_words(end) >= load_relaxed(&arena.limit))
        return false;
    unsigned first;
    size_t here;
    struct superslab *s = first_part(end, units, &first, &here);
    struct span_shard *locked = shards_lock_of(s);
    bool taken = here == units && extend_in(s, first, units, zero);
    lock_drop(&locked->lock);
    return taken;
}

/* Of which shard the units are no longer matters: only the sum does. */
void span_abandon(size_t units)
{
    struct span_shard *pool = shards_pool();
    lock_take(&pool->lock);
    owner_add(&pool->used_bytes, 0 - (units << UNIT_SHIFT));
    owner_add(&span_range.committed_bytes, 0 - (units << UNIT_SHIFT));
    limit_discharge(units << UNIT_SHIFT);
    lock_drop(&pool->lock);
}

void span_look(struct span_stats *stats)
{
    *stats = (struct span_stats){.reserved_bytes = load_relaxed(&span_range.reserved_bytes),
                                 .committed_bytes = load_relaxed(&span_range.committed_bytes)};
    for (unsigned i = 0; i < shards_count(); i++) {
        const struct span_shard *shard = &span_shards[i];
        stats->used_bytes += load_relaxed(&shard->used_bytes);
        stats->dirty_bytes += load_relaxed(&shard->dirty_units) << UNIT_SHIFT;
        stats->purged_bytes += load_relaxed(&shard->purged_bytes);
        for (unsigned stage = 0; stage < SPAN_STAGES; stage++)
            stats->served[stage] += load_relaxed(&shard->served[stage]);
        stats->waits += load_relaxed(&shard->lock.waits);
    }
}

void span_stats(struct span_stats *stats)
{
    span_lock_all();
    span_look(stats);
    span_unlock_all();
}

size_t span_dirty_bytes(void)
{
    size_t units = 0;
    for (unsigned i = 0; i < shards_count(); i++)
        units += load_relaxed(&span_shards[i].dirty_units);
    return units << UNIT_SHIFT;
}

size_t span_resident_bytes(void)
{
    lock_take(&shards_pool()->lock);
    size_t count = superslab_count();
    lock_drop(&shards_pool()->lock);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (load_relaxed(&superslab_at(i)->committed))
            bytes += os_resident(superslab_base(i), SUPERSLAB_SIZE);
    return bytes;
}
