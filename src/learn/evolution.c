#include "learn/evolution.h"

#include <stddef.h>

#include "base/bits.h"
#include "config/policy.h"
#include "heap/magazine.h"
#include "learn/prices.h"

/* Less is not worth a try: of the cost, and of the process's own time. */
#define WORTH_LEAST 0.004
#define WORTH_LEAST_OF_WORK 0.001

/* What takes long to be tried must promise more. */
#define SLOW_FACTOR 0.5

/* Of the refills, the part of a class that is worth a try of its own, and of one that changes together with others. */
#define ALONE_PART 0.2
#define USED_PART 0.01

/* And what would show only after so long is not tried at all: programs do not stay the same for that. */
enum { SLOWEST_MS = 10000 };

/* Steps up from nothing. */
enum { FIRST_MS = 16 };
#define FIRST_BYTES (4 * MIB)

void tried_note(struct tried *tried, const struct prospect *what)
{
    tried->what[tried->count++ % TRIED_MOST] = *what;
}

bool tried_has(const struct tried *tried, const struct prospect *what)
{
    uint32_t known = tried->count < TRIED_MOST ? tried->count : TRIED_MOST;
    for (uint32_t i = 0; i < known; i++) {
        const struct prospect *old = &tried->what[i];
        bool is_same = old->classes != 0 ? what->classes != 0 : what->classes == 0 && old->index == what->index;
        if (is_same && old->knob == what->knob && old->up == what->up && what->worth < 2 * old->worth)
            return true;
    }
    return false;
}

static bool is_counted_singly(enum knob knob)
{
    return knob == KNOB_PURGE_DOUBLINGS || knob == KNOB_BATCH_EIGHTHS;
}

static bool is_time(enum knob knob)
{
    return knob == KNOB_PURGE_MS || knob == KNOB_BIGCACHE_MS;
}

/* Keeping something twice as long wins nothing where it is wanted back a little later than that; and each try takes long. */
static uint64_t factor_of(enum knob knob)
{
    return is_time(knob) ? 4 : 2;
}

uint64_t evolution_step(enum knob knob, uint64_t value, bool up)
{
    const struct knob_info *info = &knob_info[knob];
    uint64_t first = is_time(knob) ? FIRST_MS : FIRST_BYTES;
    uint64_t next;
    uint64_t one = knob == KNOB_BATCH_EIGHTHS ? 2 : 1; /* an eighth more or less hardly shows */
    if (is_counted_singly(knob))
        next = up ? value + one : value - (value > one ? one : value);
    else if (up)
        next = value == 0 ? first : value * factor_of(knob);
    else
        next = value > (info->least == 0 ? first : 0) ? value / factor_of(knob) : info->least;
    if (up && is_time(knob) && next > SLOWEST_MS)
        return value;
    return next < info->least ? info->least : next > info->most ? info->most : next;
}

/* All that is needed to estimate. */
struct view_of_cost {
    const struct arm *arm;
    const struct epoch *seen;
    uint64_t delay_ms;
    double all;         /* ns */
    double least;       /* ns that must be saved */
    double refills;     /* how many */
    double large;
    double large_bytes; /* roughly */
    double misses;      /* ns: what large blocks cost that were not kept */
    double early;       /* of the faults' ns, those of pages that had been given back: at most */
    struct prospect *to;
    unsigned count;
};

static bool shows_within(uint64_t delay_ms, enum knob knob, uint64_t before, uint64_t after)
{
    return !is_time(knob) || max_size(before, after) <= delay_ms;
}

/* `classes`: struct prospect. */
static void promise_of(struct view_of_cost *v, enum knob knob, unsigned index, uint64_t classes, bool up, double saved_ns)
{
    uint64_t value = arm_value(v->arm, knob, index);
    uint64_t next = evolution_step(knob, value, up);
    if (!shows_within(v->delay_ms, knob, value, next))
        return;
    if (v->count < PROSPECTS_MOST && saved_ns >= v->least && next != value && !knob_is_pinned(knob))
        v->to[v->count++] = (struct prospect){knob, index, up, saved_ns / v->all * (is_time(knob) ? SLOW_FACTOR : 1), classes};
}

static void promise(struct view_of_cost *v, enum knob knob, unsigned index, bool up, double saved_ns)
{
    promise_of(v, knob, index, 0, up, saved_ns);
}

/* Twice as large, it halves the refills and doubles what is held; half as large, the other way round. */
static void promise_of_cache(struct view_of_cost *v, enum knob knob, unsigned index, double visits_ns, double held_ns)
{
    promise(v, knob, index, true, visits_ns / 2 - held_ns);
    promise(v, knob, index, false, held_ns / 2 - visits_ns);
}

/* Most bytes that a magazine may hold. */
static uint64_t most_of_magazine(const struct arm *arm, unsigned class)
{
    uint64_t slots_most = (uint64_t)size_classes[class].size * MAGAZINE_SLOTS_MOST;
    uint64_t bytes = arm_value(arm, KNOB_MAGAZINE_BYTES, class);
    return bytes < slots_most ? bytes : slots_most;
}

/* Of a class in use: what is cached is divided among classes by that. */
static uint64_t magazine_most(const struct view_of_cost *v, unsigned class)
{
    return v->seen->refills[class] == 0 ? 0 : most_of_magazine(v->arm, class);
}

static void look_at_magazine(struct view_of_cost *v, unsigned class, double visits_ns, double held_ns)
{
    bool has_all_slots = magazine_most(v, class) < arm_value(v->arm, KNOB_MAGAZINE_BYTES, class);
    if (has_all_slots)
        promise(v, KNOB_MAGAZINE_BYTES, class, false, held_ns / 2 - visits_ns);
    else
        promise_of_cache(v, KNOB_MAGAZINE_BYTES, class, visits_ns, held_ns);
    promise(v, KNOB_BATCH_EIGHTHS, class, true, visits_ns / 8);
    promise(v, KNOB_BATCH_EIGHTHS, class, false, visits_ns / 8);
}

/* Several classes at once: what each of them would win alone is lost in the noise, where a program uses many. */
static void promise_together(struct view_of_cost *v, enum knob knob, uint64_t classes, bool up, double saved_ns)
{
    if ((classes & (classes - 1)) != 0)
        promise_of(v, knob, (unsigned)__builtin_ctzll(classes), classes, up, saved_ns);
}

static void look_at_magazines(struct view_of_cost *v)
{
    double visits_ns = (double)v->seen->ns[COST_REFILLS];
    double held_ns = (double)v->seen->ns[COST_CACHED];
    double bytes = 0;
    uint64_t used = 0;
    uint64_t wider = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        bytes += (double)magazine_most(v, class);
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        double share = v->refills > 0 ? v->seen->refills[class] / v->refills : 0;
        bool has_all_slots = magazine_most(v, class) < arm_value(v->arm, KNOB_MAGAZINE_BYTES, class);
        if (share >= ALONE_PART)
            look_at_magazine(v, class, visits_ns * share, held_ns * (double)magazine_most(v, class) / bytes);
        used |= (uint64_t)(share >= USED_PART) << class;
        wider |= (uint64_t)(share >= USED_PART && !has_all_slots) << class;
    }
    promise_together(v, KNOB_MAGAZINE_BYTES, wider, true, visits_ns / 2 - held_ns);
    promise_together(v, KNOB_MAGAZINE_BYTES, used, false, held_ns / 2 - visits_ns);
    promise_together(v, KNOB_BATCH_EIGHTHS, used, true, visits_ns / 4);
    promise_together(v, KNOB_BATCH_EIGHTHS, used, false, visits_ns / 8);
    promise_of_cache(v, KNOB_THREAD_CACHE_BYTES, 0, visits_ns / 2, held_ns);
}

/* The budget matters if it is used up at times. */
static void look_at_bigcache(struct view_of_cost *v)
{
    double held_ns = (double)v->seen->ns[COST_KEPT];
    uint64_t budget = arm_value(v->arm, KNOB_BIGCACHE_BYTES, 0);
    bool is_used_up = v->seen->kept_most >= budget - budget / 4;
    if (is_used_up)
        promise(v, KNOB_BIGCACHE_BYTES, 0, true, v->misses / 2 - held_ns / 4);
    if (v->seen->kept_most >= budget / 2)
        promise(v, KNOB_BIGCACHE_BYTES, 0, false, held_ns / 2 - v->misses);
    for (unsigned bin = 0; bin < SIZE_BINS && v->large > 0; bin++) {
        double share = v->seen->large[bin] * (double)((uint64_t)1 << bin) / v->large_bytes;
        if (!is_used_up)
            promise(v, KNOB_BIGCACHE_MS, bin, true, (v->misses / 2 - held_ns) * share);
        promise(v, KNOB_BIGCACHE_MS, bin, false, (held_ns / 2 - v->misses) * share);
    }
}

/* How often the delay doubles is left to the purge, which learns it by itself (span/decay.h). */
static void look_at_purge(struct view_of_cost *v)
{
    double held_ns = (double)v->seen->ns[COST_DIRTY];
    promise_of_cache(v, KNOB_PURGE_MS, 0, v->early, held_ns);
}

static double shares_of_bins(const struct epoch *seen, double *bytes)
{
    double all = 0;
    for (unsigned bin = 0; bin < SIZE_BINS; bin++) {
        all += seen->large[bin];
        *bytes += seen->large[bin] * (double)((uint64_t)1 << bin);
    }
    return all;
}

static double more(double a, double b)
{
    return a > b ? a : b;
}

/* Of large blocks that were not kept, the runs of units: some may be of slabs. */
static double units_ns(const struct epoch *seen, double large)
{
    double units = (double)seen->ns[COST_LARGE] - large * PRICE_LARGE;
    return units < 0 ? 0 : units < large * PRICE_UNITS ? units : large * PRICE_UNITS;
}

bool evolution_goes_on(const struct arm *arm, const struct prospect *last, uint64_t delay_ms)
{
    uint64_t value = arm_value(arm, last->knob, last->index);
    uint64_t next = evolution_step(last->knob, value, last->up);
    return next != value && shows_within(delay_ms, last->knob, value, next);
}

unsigned evolution_prospects(struct prospect to[PROSPECTS_MOST], const struct arm *arm, const struct epoch *seen,
                             unsigned parts, uint64_t delay_ms)
{
    struct view_of_cost v = {.arm = arm, .seen = seen, .delay_ms = delay_ms, .all = (double)epoch_ns(seen), .to = to};
    double faults_ns = (double)seen->ns[COST_FAULTS];
    if (v.all <= 0)
        return 0;
    v.least = more(v.all * WORTH_LEAST, (double)seen->work_ns * WORTH_LEAST_OF_WORK);
    v.large = shares_of_bins(seen, &v.large_bytes);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        v.refills += seen->refills[class];
    v.misses = v.large > 0 ? faults_ns + (double)seen->ns[COST_CALLS] + units_ns(seen, v.large) : 0;
    double purged_ns = (double)seen->purged / PRICED_PAGE_BYTES * (double)PRICE_FAULT;
    v.early = (purged_ns < faults_ns ? purged_ns : faults_ns) + (seen->purged > 0 ? (double)seen->ns[COST_CALLS] : 0);
    look_at_magazines(&v);
    look_at_purge(&v);
    if ((parts & LEARN_BIGCACHE) != 0)
        look_at_bigcache(&v);
    return v.count;
}

static double uniform(uint64_t *random)
{
    *random = next_xorshift(*random);
    return (double)(*random >> 11) / (double)((uint64_t)1 << 53);
}

const struct prospect *evolution_choose(const struct prospect *prospects, unsigned count, const struct tried *tried,
                                        uint64_t *random)
{
    const struct prospect *chosen = NULL;
    double all = 0;
    for (unsigned i = 0; i < count; i++) {
        if (tried_has(tried, &prospects[i]))
            continue;
        all += prospects[i].worth;
        if (uniform(random) * all < prospects[i].worth)
            chosen = &prospects[i];
    }
    return chosen;
}

static void change(struct arm *child, const struct prospect *prospect, unsigned index)
{
    uint64_t value = arm_value(child, prospect->knob, index);
    arm_set(child, prospect->knob, index, evolution_step(prospect->knob, value, prospect->up));
}

/* Wider magazines win nothing where all together may not hold more, and the other way round: neither would be found alone. */
static void make_room(struct arm *child, uint64_t classes)
{
    uint64_t bytes = 0;
    uint64_t value = arm_value(child, KNOB_THREAD_CACHE_BYTES, 0);
    for (uint64_t left = classes; left != 0; left &= left - 1)
        bytes += most_of_magazine(child, (unsigned)__builtin_ctzll(left));
    while (value / MAGAZINES_SHARE < bytes && evolution_step(KNOB_THREAD_CACHE_BYTES, value, true) != value)
        value = evolution_step(KNOB_THREAD_CACHE_BYTES, value, true);
    if (!knob_is_pinned(KNOB_THREAD_CACHE_BYTES))
        arm_set(child, KNOB_THREAD_CACHE_BYTES, 0, value);
}

void evolution_make(struct arm *child, const struct arm *parent, const struct prospect *prospect)
{
    *child = (struct arm){.elo = elo_of_child(&parent->elo), .count = parent->count};
    for (uint32_t i = 0; i < parent->count; i++)
        child->changes[i] = parent->changes[i];
    if (prospect->classes == 0) {
        change(child, prospect, prospect->index);
        return;
    }
    for (uint64_t left = prospect->classes; left != 0; left &= left - 1)
        change(child, prospect, (unsigned)__builtin_ctzll(left));
    if (prospect->knob == KNOB_MAGAZINE_BYTES && prospect->up)
        make_room(child, prospect->classes);
}

/* A knob, how many steps up it goes or, below 0, down, and what part of the learner it belongs to; 0: to none. */
struct preset {
    enum knob knob;
    int steps;
    unsigned part;
};

enum { PRESETS = 6 };

static const struct preset presets[PRESETS] = {
    {KNOB_BIGCACHE_BYTES, 2, LEARN_BIGCACHE}, /* more large blocks are kept */
    {KNOB_BIGCACHE_BYTES, -2, LEARN_BIGCACHE}, /* fewer */
    {KNOB_THREAD_CACHE_BYTES, 2, 0}, /* threads cache more */
    {KNOB_THREAD_CACHE_BYTES, -2, 0}, /* less */
    {KNOB_PURGE_MS, 1, 0},                     /* pages are given back late */
    {KNOB_PURGE_MS, -1, 0},                    /* early */
};

bool evolution_preset(struct arm *arm, unsigned number, unsigned parts)
{
    if (number >= PRESETS)
        return false;
    *arm = (struct arm){.elo = elo_unknown()};
    const struct preset *preset = &presets[number];
    uint64_t value = knob_of_mode(preset->knob, 0);
    unsigned part = preset->part != 0 ? preset->part : LEARN_ELO; /* what is no part's own is tried where policies are rated */
    if ((part & ~parts) != 0 || knob_is_pinned(preset->knob))
        return true;
    for (int step = 0; step < preset->steps || step < -preset->steps; step++)
        value = evolution_step(preset->knob, value, preset->steps > 0);
    arm_set(arm, preset->knob, 0, value);
    return true;
}
