#include "span/superslab.h"

#include "base/atomic.h"
#include "config/policy.h"
#include "os/os.h"

enum { CANDIDATES = 8 };

/* by_room[n - 1]: committed superslabs with n free units. */
static struct list by_room[SUPERSLAB_UNITS];
static bits128 rooms; /* bit i: by_room[i] is not empty */

/* Superslabs are looked for from here: all below are known not to be wholly free. */
static size_t search_from;
size_t superslab_end;
size_t superslab_dirty;

static void unlink_superslab(struct superslab *s, unsigned room)
{
    list_remove(&by_room[room - 1], &s->link);
    if (by_room[room - 1].first == NULL)
        rooms &= ~((bits128)1 << (room - 1));
}

static void link_superslab(struct superslab *s, unsigned room)
{
    list_push_front(&by_room[room - 1], &s->link);
    rooms |= (bits128)1 << (room - 1);
}

static void count_dirty(bits128 before, bits128 after)
{
    store_relaxed(&superslab_dirty, superslab_dirty + count_ones128(after & ~before) - count_ones128(before & ~after));
}

void superslab_set_dirty(struct superslab *s, bits128 dirty)
{
    count_dirty(s->dirty & ~s->used, dirty & ~s->used);
    s->dirty = dirty;
}

size_t superslab_dirty_units(void)
{
    return load_relaxed(&superslab_dirty);
}

void superslab_set_used(struct superslab *s, bits128 used)
{
    unsigned before = superslab_free_units(s);
    count_dirty(s->dirty & ~s->used, s->dirty & ~used);
    s->used = used;
    s->settled = 0;
    unsigned after = superslab_free_units(s);
    if (used == 0 && superslab_index(s) < search_from)
        search_from = superslab_index(s);
    if (!s->committed || before == after)
        return;
    if (before > 0)
        unlink_superslab(s, before);
    if (after > 0)
        link_superslab(s, after);
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
        if (superslab_free_units(s) > 0)
            link_superslab(s, superslab_free_units(s));
    }
    return true;
}

/* Bit u: u is a multiple of `align`. */
static bits128 multiples(unsigned align)
{
    bits128 found = 1;
    for (unsigned distance = SUPERSLAB_UNITS / 2; distance >= align; distance /= 2)
        found |= found << distance;
    return found;
}

/* Bit u: `units` ones begin at u. */
static bits128 run_starts(bits128 ones, unsigned units)
{
    for (unsigned have = 1; have < units;) {
        unsigned step = units - have < have ? units - have : have;
        ones &= ones >> step;
        have += step;
    }
    return ones;
}

/* The run of ones around bit `at`, which is one. */
static bits128 hole_around(bits128 ones, unsigned at)
{
    bits128 above = ~(ones >> at) == 0 ? ~(bits128)0 : mask128(lowest_one128(~(ones >> at)));
    bits128 zeros_below = ~ones & mask128(at);
    unsigned first = zeros_below == 0 ? 0 : highest_one128(zeros_below) + 1;
    return (above << at | mask128(at)) & ~mask128(first);
}

/* A place for a run, and what is left of the hole that it is cut from. */
struct place {
    struct superslab *superslab;
    unsigned first;
    unsigned left;
};

/* The tightest of the places in `s` where `units` ones begin, if it is tighter than the best so far. */
static void find_in(struct place *best, struct superslab *s, bits128 ones, unsigned units, bits128 places)
{
    for (bits128 starts = run_starts(ones, units) & places; starts != 0;) {
        unsigned at = lowest_one128(starts);
        bits128 hole = hole_around(~s->used, at);
        unsigned left = count_ones128(hole) - units;
        if (best->superslab == NULL || left < best->left)
            *best = (struct place){s, at, left};
        starts &= ~hole;
    }
}

/* The tightest place, in the fullest superslab of several, of units that were written before if `warm`. */
static struct place find(unsigned units, bits128 places, bool warm)
{
    struct place best = {0};
    for (bits128 left = rooms & ~mask128(units - 1); left != 0; left &= left - 1) {
        struct list_node *node = by_room[lowest_one128(left)].first;
        for (int tried = 0; node != NULL && tried < CANDIDATES; node = node->next, tried++) {
            struct superslab *s = LIST_ENTRY(node, struct superslab, link);
            find_in(&best, s, warm ? s->dirty & ~s->used : ~s->used, units, places);
            if (best.superslab != NULL && best.left == 0)
                return best;
        }
    }
    return best;
}

struct superslab *superslab_find(unsigned units, unsigned align, unsigned *first)
{
    bits128 places = multiples(align);
    struct place place = find(units, places, true);
    if (place.superslab == NULL)
        place = find(units, places, false);
    *first = place.first;
    return place.superslab;
}

static bool is_wholly_free(size_t index)
{
    const struct superslab *s = superslab_at(index);
    return s->reserved && s->used == 0;
}

/* The first index from `index` on whose superslab's address is a multiple of `align` superslabs. */
static size_t aligned_index(size_t index, size_t align)
{
    size_t first = (uintptr_t)arena.base >> SUPERSLAB_SHIFT;
    return align_up(first + index, align) - first;
}

size_t superslab_find_run(size_t count, size_t align)
{
    while (search_from < superslab_end && !is_wholly_free(search_from))
        search_from++;
    size_t start = aligned_index(search_from, align);
    for (size_t i = start; start + count <= superslab_end;) {
        if (!is_wholly_free(i)) {
            start = aligned_index(i + 1, align);
            i = start;
        } else if (++i == start + count) {
            return start;
        }
    }
    return SIZE_MAX;
}

void superslab_add(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        superslab_at(i)->reserved = true;
    if (first < search_from)
        search_from = first;
    superslab_end = first + count;
}

size_t superslab_count(void)
{
    return superslab_end;
}
