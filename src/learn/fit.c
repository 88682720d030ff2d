#include "learn/fit.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/claim.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "heap/classes.h"
#include "heap/events.h"
#include "heap/life.h"
#include "learn/decisions.h"
#include "learn/fit_choice.h"
#include "learn/fit_sizes.h"

enum {
    VAIN_MOST = 16,      /* epochs in a row in which a class has not been worth it: then it is closed */
    EARLY_BEATS = 16,    /* at each of which it is looked at; */
    EPOCH_MS = 200,      /* later, after so long, */
    EPOCH_BEATS = 8,     /* and so many */
    HEARD_BEATS = 32,    /* up to which each refill is counted; */
    HEARD_PART = 8,      /* later, those between one of so many heartbeats and the next: counting costs a tenth of a refill; */
    KNOWN_BEATS = 512,   /* and of so many times as many, */
    KNOWN_PART = 32,     /* after which little of what is heard is news */
    FORGET_EPOCHS = 4096, /* after which half of how often a size has failed is forgotten: a quarter of an hour, or more */
    DRAIN_EPOCHS = 64,   /* so long is waited for the last blocks of classes that were closed, before another makes room; */
    DRAIN_MOST = 4,      /* and while there are no more of them than this */
    IDLE_PART = 16,      /* of what a class saves, so much is forgotten in each epoch in which it has nothing */
    MADE = SIZE_CLASSES - SIZE_CLASSES_FIXED,
};

/* Of a class, now. */
struct fit_class {
    uint64_t out;
    uint64_t slabs;
    uint32_t heaps;
};

/* What is known. The process's whose number `owner` is; a child of a fork takes over what it finds. */
static struct fit {
    struct fit_sizes sizes;
    struct fit_class now[SIZE_CLASSES];
    uint64_t held;                      /* bytes, by slabs of all classes */
    uint64_t evidence[SIZE_CLASSES];    /* refills that were known of its sizes, at most */
    uint32_t vain[SIZE_CLASSES];        /* epochs in a row */
    uint64_t saves[SIZE_CLASSES];       /* bytes, of those that are open */
    uint32_t failures[FIT_STEPS];       /* by size: how often its class was closed, not being worth it */
    uint32_t wished[MADE];              /* sizes that observe mode would have opened */
    uint32_t wishes;
    uint32_t epochs;
    uint32_t room_made;                 /* the epoch in which a class was closed to make room, the last time */
} *fit;

static bool is_deaf; /* refills are not counted just now */
static bool is_large; /* a heap has had policy.fit_bytes in slabs */
static bool has_opened; /* a class, by itself: there is something to remember */
static uint32_t owner; /* of what is known, while an epoch ends: its process */

static bool begin(void)
{
    if (!claim_take(&owner))
        return false;
    if (fit == NULL)
        store_release(&fit, (struct fit *)meta_alloc(sizeof *fit));
    if (fit == NULL)
        claim_drop(&owner);
    return fit != NULL;
}

/* Not in the hardened library, where a class that comes late would not use the holes of the fixed one (classes.h). */
static bool is_wanted(void)
{
    if (HARDENED)
        return false;
    if (load_relaxed(&policy.learn) != LEARN_OFF)
        return (load_relaxed(&policy.learn_parts) & LEARN_CLASSES) != 0;
    return load_relaxed(&is_large) && !policy.learn_is_pinned && load_relaxed(&policy.fit_bytes) != SIZE_MAX;
}

/* What was large stays so: classes that were opened are closed when they are of no use any more. */
bool fit_is_alone(const struct heap *heap)
{
    if (!load_relaxed(&is_large) && heap->units << UNIT_SHIFT >= load_relaxed(&policy.fit_bytes))
        store_relaxed(&is_large, true);
    return load_relaxed(&policy.learn) == LEARN_OFF && is_wanted();
}

static void note_refill(const struct heap *heap, size_t size, unsigned class, size_t blocks)
{
    (void)heap;
    (void)class;
    if (LIKELY(is_wanted()))
        fit_sizes_note(size, blocks);
    else
        fit_follow_policy();
}

void fit_follow_policy(void)
{
    store_relaxed(&heap_events.refilled, is_wanted() && !load_relaxed(&is_deaf) ? note_refill : NULL);
}

static bool is_open(unsigned id)
{
    return (load_relaxed(&classes_defined) & ~load_relaxed(&classes_draining)) >> id & 1;
}

static void add_heap(const struct heap *heap)
{
    for (unsigned id = 0; id < SIZE_CLASSES; id++) {
        uint32_t slabs = load_relaxed(&heap->counts->slabs[id]);
        if (slabs == 0)
            continue;
        fit->now[id].slabs += slabs;
        fit->now[id].heaps++;
        fit->now[id].out += load_relaxed(&heap->shelf[id].blocks_out);
        fit->held += (uint64_t)slabs * load_relaxed(&size_classes[id].units) * UNIT_SIZE;
    }
}

static void look_at_heaps(void)
{
    fit->held = 0;
    for (unsigned id = 0; id < SIZE_CLASSES; id++)
        fit->now[id] = (struct fit_class){0};
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        add_heap(heap);
}

/* The requests above so many bytes that the class serves. */
static struct fit_range range_of(unsigned id, size_t above)
{
    size_t size = size_class_bytes(id);
    const struct fit_class *class = &fit->now[id];
    return (struct fit_range){
        .above = above,
        .size = size,
        .out = class->out,
        .heaps = class->heaps,
        .seen = fit->sizes.blocks,
        .refills = fit->sizes.refills[size_class_fixed(size)],
    };
}

/* What it would save, in millionths of what is held. */
static int64_t gain_of(uint64_t saves, uint64_t costs)
{
    return fit->held == 0 ? 0 : (int64_t)(((double)saves - (double)costs) / (double)fit->held * 1e6);
}

static void note(uint64_t now_ms, enum decision_kind kind, const struct fit_offer *offer, unsigned id, size_t other,
                 bool applied)
{
    bool opened = kind == DECIDED_CLASS_OPENED;
    decision_note(&(struct decision){
        .ms = now_ms,
        .kind = kind,
        .what = id,
        .before = opened ? other : offer->size,
        .after = opened ? offer->size : other,
        .evidence = fit->sizes.refills[size_class_fixed(offer->size)],
        .gain = opened ? gain_of(offer->saves, offer->costs) : gain_of(offer->costs, offer->saves),
        .subject = offer->size,
        .applied = applied,
    });
}

/* It has to save more to be opened again. */
static void close_class(uint64_t now_ms, unsigned id, const struct fit_offer *offer, size_t next)
{
    fit->failures[fit_step(offer->size)]++;
    classes_close(id);
    note(now_ms, DECIDED_CLASS_CLOSED, offer, id, next, true);
}

/* A class that has nothing costs nothing, and stays for when it is wanted again. While the process starts, none is given up: an
 * earlier run may have known it. */
static void reconsider(uint64_t now_ms, unsigned id, const struct fit_range *range)
{
    size_t next = size_class_bytes(size_class_of(range->size + 1));
    struct fit_offer offer = fit_of_class(range, next);
    fit->saves[id] = offer.saves;
    store_relaxed(&fit->evidence[id], max_size(fit->evidence[id], range->refills));
    fit->vain[id] = fit_is_vain(&offer) && fit->epochs > EARLY_BEATS ? fit->vain[id] + 1 : 0;
    if (fit->vain[id] < VAIN_MOST)
        return;
    if (load_relaxed(&policy.learn) == LEARN_OBSERVE) {
        if (fit->vain[id] == VAIN_MOST)
            note(now_ms, DECIDED_CLASS_CLOSED, &offer, id, next, false);
        return;
    }
    close_class(now_ms, id, &offer, next);
}

/* Not where a block of a closed class is kept for ever; but each such takes an id. */
static bool is_room_coming(void)
{
    unsigned draining = count_ones64(load_relaxed(&classes_draining));
    return draining >= DRAIN_MOST || (draining > 0 && fit->epochs - fit->room_made < DRAIN_EPOCHS);
}

/* All ids are taken: the class that saves least goes, if this one saves twice as much. One at a time, and until its last slab
 * is gone the offer waits. */
static void make_room(uint64_t now_ms, const struct fit_offer *offer)
{
    unsigned least = SIZE_CLASSES;
    if (is_room_coming())
        return;
    for (unsigned id = SIZE_CLASSES_FIXED; id < SIZE_CLASSES; id++)
        if (is_open(id) && (least == SIZE_CLASSES || fit->saves[id] < fit->saves[least]))
            least = id;
    if (least == SIZE_CLASSES || fit->saves[least] > offer->saves / 2)
        return;
    size_t next = size_class_bytes(size_class_of(size_class_bytes(least) + 1));
    /* It costs what the other would save. */
    struct fit_offer worse = {.size = size_class_bytes(least), .saves = fit->saves[least], .costs = offer->saves};
    fit->room_made = fit->epochs;
    close_class(now_ms, least, &worse, next);
}

/* `saves`: bytes, as is expected until it has blocks. */
static unsigned open_class(size_t size, uint64_t saves)
{
    unsigned id = classes_open(size);
    if (id < SIZE_CLASSES) {
        store_relaxed(&fit->evidence[id], (uint64_t)fit->sizes.refills[size_class_fixed(size)]);
        fit->vain[id] = 0;
        fit->saves[id] = saves;
    }
    return id;
}

static void wish(uint64_t now_ms, const struct fit_offer *offer, size_t instead_of)
{
    if (fit->wishes == MADE)
        return;
    fit->wished[fit->wishes++] = (uint32_t)offer->size;
    note(now_ms, DECIDED_CLASS_OPENED, offer, SIZE_CLASSES, instead_of, false);
}

static void consider(uint64_t now_ms, const struct fit_range *range)
{
    struct fit_offer offer = fit_best(range);
    if (!fit_is_worth(&offer, fit->held, fit->failures[fit_step(offer.size)]))
        return;
    if (load_relaxed(&policy.learn) == LEARN_OBSERVE) {
        wish(now_ms, &offer, range->size);
        return;
    }
    unsigned id = open_class(offer.size, offer.saves);
    if (id >= SIZE_CLASSES) {
        make_room(now_ms, &offer);
        return;
    }
    store_relaxed(&has_opened, true);
    note(now_ms, DECIDED_CLASS_OPENED, &offer, id, range->size, true);
}

/* Observe mode sees the range as if the sizes that it wished for had classes. */
static void rank_parts(struct fit_worst *worst, struct fit_range range)
{
    for (;;) {
        size_t size = range.size;
        for (uint32_t i = 0; i < fit->wishes; i++)
            if (fit->wished[i] > range.above && fit->wished[i] < size)
                size = fit->wished[i];
        struct fit_range part = fit_cut(&range, size);
        fit_rank(worst, &part, fit->held);
        if (range.size == size)
            return;
    }
}

/* From one class to the next larger one, by the table. */
static void look_at_ranges(uint64_t now_ms)
{
    struct fit_worst worst = {0};
    for (size_t above = SIZE_CLASS_FITS; above < SMALL_MAX;) {
        unsigned id = size_class_of(above + 1);
        struct fit_range range = range_of(id, above);
        rank_parts(&worst, range);
        if (id >= SIZE_CLASSES_FIXED && fit->now[id].slabs > 0)
            reconsider(now_ms, id, &range);
        else if (id >= SIZE_CLASSES_FIXED)
            fit->saves[id] -= divide_up(fit->saves[id], IDLE_PART);
        above = range.size;
    }
    for (size_t i = 0; i < FIT_WORST && worst.waste[i] > 0; i++)
        consider(now_ms, &worst.range[i]);
}

static void forget_failures(void)
{
    for (size_t step = 0; step < FIT_STEPS; step++)
        fit->failures[step] /= 2;
}

void fit_epoch(uint64_t now_ms)
{
    fit_follow_policy();
    if (!is_wanted() || !begin())
        return;
    classes_reclaim_one();
    fit_sizes_collect(&fit->sizes);
    look_at_heaps();
    look_at_ranges(now_ms);
    if (++fit->epochs % FORGET_EPOCHS == 0)
        forget_failures();
    claim_drop(&owner);
}

static void listen(bool hears)
{
    if (load_relaxed(&is_deaf) == !hears)
        return;
    store_relaxed(&is_deaf, !hears);
    fit_follow_policy();
}

void fit_at_heartbeat(uint64_t now_ms)
{
    static uint32_t beats;
    static uint32_t last_beat;
    static uint64_t last_ms;
    uint32_t beat = add_relaxed(&beats, 1u);
    listen(beat < HEARD_BEATS || beat % (beat < KNOWN_BEATS ? HEARD_PART : KNOWN_PART) == 0);
    bool is_due = now_ms - load_relaxed(&last_ms) >= EPOCH_MS && beat - load_relaxed(&last_beat) >= EPOCH_BEATS;
    if (beat >= EARLY_BEATS && !is_due)
        return;
    store_relaxed(&last_beat, beat);
    store_relaxed(&last_ms, now_ms);
    fit_epoch(now_ms);
}

bool fit_preset(size_t size, uint64_t evidence)
{
    if (HARDENED || !begin())
        return false;
    unsigned id = open_class(size, 0);
    if (id < SIZE_CLASSES)
        store_relaxed(&fit->evidence[id], evidence);
    claim_drop(&owner);
    return id < SIZE_CLASSES;
}

bool fit_has_opened(void)
{
    return load_relaxed(&has_opened);
}

void fit_forked(void)
{
    store_relaxed(&has_opened, false);
}

void fit_each(void (*tell)(size_t size, uint64_t evidence, void *argument), void *argument)
{
    const struct fit *known = load_acquire(&fit);
    for (unsigned id = SIZE_CLASSES_FIXED; id < SIZE_CLASSES; id++)
        if (is_open(id) && known != NULL)
            tell(size_class_bytes(id), load_relaxed(&known->evidence[id]), argument);
}
