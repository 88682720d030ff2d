#include "span/superslab.h"

#include "base/atomic.h"
#include "base/fail.h"
#include "config/policy.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/shards.h"

/* Of each number of free units so many superslabs are looked at; and once there is a place, so many superslabs more. */
enum { CANDIDATES = 8, MORE_CANDIDATES = 32 };

/* So many numbers may be in vain. Then a place of any kind is looked for where there is one as a rule: in those that have the most room, or
 * up to so many units less; and a warm one, where there are many as a rule: in so many that were freed into last. */
enum { VAIN_ROOMS = 8, ROOMIEST_SPREAD = SUPERSLAB_UNITS / 4, NEWEST_CANDIDATES = 256 };

size_t superslab_end;

/* A call: where processors may not have an instruction for it, that is shorter by far than the code. None and all are the most frequent. */
static NOINLINE unsigned count_units(bits128 units)
{
    if (units == 0)
        return 0;
    return ~units == 0 ? SUPERSLAB_UNITS : count_ones128(units);
}

static unsigned free_units(const struct superslab *s)
{
    return SUPERSLAB_UNITS - count_units(s->used);
}

/* Those of the shard with so many free units: not none. */
ALWAYS_INLINE struct list *with_room(struct span_shard *shard, unsigned room)
{
    return &shard->by_room[SUPERSLAB_UNITS - room];
}

/* Of `rooms`, for so many free units: not none. */
ALWAYS_INLINE bits128 bit_of_room(unsigned room)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): room is not 0 */
    return (bits128)1 << (room - 1);
}

ALWAYS_INLINE void unlink_superslab(struct span_shard *shard, struct superslab *s, unsigned room)
{
    list_remove(with_room(shard, room), &s->link);
    if (with_room(shard, room)->first == NULL)
        shard->rooms &= ~bit_of_room(room);
}

ALWAYS_INLINE void link_superslab(struct span_shard *shard, struct superslab *s, unsigned room)
{
    list_push_front(with_room(shard, room), &s->link);
    shard->rooms |= bit_of_room(room);
}

ALWAYS_INLINE void note_fits(struct span_shard *shard, enum room_kind kind, unsigned units)
{
    if (units > shard->fits[kind])
        store_relaxed(&shard->fits[kind], units);
}

/* It has more room than before. */
ALWAYS_INLINE void note_room(struct span_shard *shard, struct superslab *s, unsigned room)
{
    note_fits(shard, ROOM_ANY, room);
    if ((s->dirty & ~s->used) == 0)
        return;
    note_fits(shard, ROOM_WARM, room);
    s->warm_most = (uint8_t)room;
}

/* Enters it in the shard's index, with more room than it had there. */
static NOINLINE void index_superslab(struct span_shard *shard, struct superslab *s, unsigned room)
{
    link_superslab(shard, s, room);
    note_room(shard, s, room);
}

/* Units come, or units go; not both. */
static void count_dirty(struct span_shard *shard, bits128 before, bits128 after)
{
    bits128 changed = before ^ after;
    size_t units = count_units(changed);
    if (changed != 0)
        store_relaxed(&shard->dirty_units, shard->dirty_units + ((after & changed) != 0 ? units : 0 - units));
}

void superslab_set_dirty(struct superslab *s, bits128 dirty)
{
    count_dirty(shard_of(s), s->dirty & ~s->used, dirty & ~s->used);
    s->dirty = dirty;
}

/* Wholly free: neighbours are looked for in the pool, and nothing of it counts as absent any more. */
static void give_to_pool(struct span_shard *shard, struct superslab *s)
{
    shards_lock_pool_too(shard);
    if (shard != shards_pool())
        superslab_move(s, shards_pool());
    superslab_note_whole(superslab_index(s), true);
    if (UNLIKELY(s->filled != 0))
        huge_bound_filled(s);
    shards_unlock_pool_too(shard);
}

void superslab_set_used(struct superslab *s, bits128 used)
{
    struct span_shard *shard = shard_of(s);
    unsigned before = free_units(s);
    count_dirty(shard, s->dirty & ~s->used, s->dirty & ~used);
    if (s->used == 0 && shard == shards_pool())
        superslab_note_whole(superslab_index(s), false);
    s->used = used;
    s->settled = 0;
    unsigned after = free_units(s);
    if (s->committed && before != after) {
        if (before > 0)
            unlink_superslab(shard, s, before);
        if (after > before)
            index_superslab(shard, s, after);
        else if (after > 0)
            link_superslab(shard, s, after);
    }
    if (used == 0)
        give_to_pool(shard, s);
}

/* At the end of the queue, as if freed into no earlier than the last: a superslab that changes its shard is one that is used. */
static void move_in_queues(struct superslab *s, struct span_shard *from, struct span_shard *to)
{
    if (s->queued) {
        list_remove(&from->dirty_queue, &s->age);
        if (to->dirty_queue.last != NULL)
            s->freed_ms = max_size(s->freed_ms, LIST_ENTRY(to->dirty_queue.last, struct superslab, age)->freed_ms);
        list_push_back(&to->dirty_queue, &s->age);
    }
    if (s->purging != 0) {
        list_remove(&from->in_purge, &s->purge);
        list_push_back(&to->in_purge, &s->purge);
    }
}

/* No sum over the shards is ever below zero, whoever reads it when. */
static void move_counts(const struct superslab *s, struct span_shard *from, struct span_shard *to)
{
    size_t used_bytes = (size_t)count_units(s->used & ~s->purging) << UNIT_SHIFT;
    unsigned dirty_units = count_units(s->dirty & ~s->used);
    owner_add(&to->used_bytes, used_bytes);
    owner_add(&from->used_bytes, 0 - used_bytes);
    owner_add(&to->dirty_units, dirty_units);
    owner_add(&from->dirty_units, 0 - (size_t)dirty_units);
}

void superslab_move(struct superslab *s, struct span_shard *to)
{
    struct span_shard *from = shard_of(s);
    unsigned room = free_units(s);
    ASSERT(lock_is_mine(&from->lock) && lock_is_mine(&to->lock) && room > 0 && s->committed);
    if (s->used == 0 && from == shards_pool())
        superslab_note_whole(superslab_index(s), false);
    unlink_superslab(from, s, room);
    index_superslab(to, s, room);
    move_in_queues(s, from, to);
    move_counts(s, from, to);
    store_relaxed(&s->shard, (uint8_t)(to - span_shards));
}

bool superslab_commit(size_t first, size_t count)
{
    if (!os_commit(superslab_base(first), count << SUPERSLAB_SHIFT))
        return false;
    if (policy.huge == HUGE_ON)
        os_allow_huge_pages(superslab_base(first), count << SUPERSLAB_SHIFT);
    for (size_t i = first; i < first + count; i++) {
        struct superslab *s = superslab_at(i);
        store_relaxed(&s->committed, true);
        unsigned room = free_units(s);
        if (room > 0)
            index_superslab(shards_pool(), s, room);
    }
    return true;
}

/* Where the hole ends in which unit `at` is, and how long it is. */
ALWAYS_INLINE unsigned hole_end(const struct superslab *s, unsigned at, unsigned *units)
{
    bits128 used_above = s->used >> at;
    bits128 used_below = s->used & mask128(at);
    unsigned end = used_above != 0 ? at + lowest_one128(used_above) : SUPERSLAB_UNITS;
    *units = end - (used_below != 0 ? highest_one128(used_below) + 1 : 0);
    return end;
}

/* The tightest of the places in `s` where `units` ones begin, if it is tighter than the best so far. Are there as many neighbours at all? */
static bool find_in(struct place *best, struct superslab *s, bits128 ones, unsigned units, bits128 places)
{
    bits128 runs = run_starts128(ones, units);
    for (bits128 starts = runs & places; starts != 0;) {
        unsigned at = lowest_one128(starts);
        unsigned hole;
        unsigned end = hole_end(s, at, &hole);
        if (best->superslab == NULL || hole - units < best->left)
            *best = (struct place){s, at, hole - units};
        starts &= ~mask128(end);
    }
    return runs != 0;
}

static void find_warm_in(struct place *best, struct superslab *s, unsigned units, bits128 places)
{
    bits128 warm = s->dirty & ~s->used;
    ASSERT(s->warm_most >= units || run_starts128(warm, units) == 0);
    if (s->warm_most >= units && !find_in(best, s, warm, units, places))
        s->warm_most = (uint8_t)(units - 1);
}

/* The next number of free units that there are superslabs with, from `least` on; 0: none. */
static NOINLINE unsigned next_room(const struct span_shard *shard, unsigned least)
{
    bits128 rooms = least <= SUPERSLAB_UNITS ? shard->rooms >> (least - 1) : 0;
    return rooms != 0 ? least + lowest_one128(rooms) : 0;
}

/* From `least` on, as next_room: of the superslabs with the most. */
static unsigned among_roomiest(const struct span_shard *shard, unsigned least)
{
    unsigned roomiest = highest_one128(shard->rooms) + 1;
    return next_room(shard, roomiest > least + ROOMIEST_SPREAD ? roomiest - ROOMIEST_SPREAD : least);
}

static NOINLINE struct place find_among_newest(const struct span_shard *shard, unsigned units, bits128 places)
{
    struct place best = {0};
    struct list_node *node = shard->dirty_queue.last;
    for (int tried = 0; node != NULL && tried < NEWEST_CANDIDATES && best.superslab == NULL; node = node->prev, tried++)
        find_warm_in(&best, LIST_ENTRY(node, struct superslab, age), units, places);
    return best;
}

struct place superslab_find(struct span_shard *shard, unsigned units, unsigned align, enum room_kind kind)
{
    bits128 places = multiples128(align);
    struct place best = {0};
    unsigned vain = VAIN_ROOMS;
    unsigned more = MORE_CANDIDATES;
    bool saw_all = true;
    for (unsigned next, room = next_room(shard, units); room != 0; room = next) {
        struct list_node *node = with_room(shard, room)->first;
        for (int tried = 0; node != NULL && tried < CANDIDATES; node = node->next, tried++) {
            struct superslab *s = LIST_ENTRY(node, struct superslab, link);
            if (kind == ROOM_WARM)
                find_warm_in(&best, s, units, places);
            else
                (void)find_in(&best, s, ~s->used, units, places);
            if (best.superslab != NULL && (best.left == 0 || more-- == 0))
                return best;
        }
        next = next_room(shard, room + 1);
        if (best.superslab != NULL || --vain != 0 || next == 0)
            continue;
        if (kind == ROOM_WARM)
            return find_among_newest(shard, units, places);
        unsigned roomy = among_roomiest(shard, next);
        saw_all = roomy == next;
        next = roomy;
    }
    if (best.superslab == NULL && align == 1 && saw_all)
        store_relaxed(&shard->fits[kind], (uint32_t)min_size(shard->fits[kind], units - 1));
    return best;
}

void superslab_add(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        superslab_at(i)->reserved = true;
        superslab_note_whole(i, true);
    }
    superslab_end = first + count;
}

size_t superslab_count(void)
{
    return superslab_end;
}
