#include "learn/sites.h"

#include "arena/meta.h"
#include "base/shard.h"
#include "base/thread.h"
#include "config/knobs.h"
#include "config/policy.h"
#include "learn/decisions.h"
#include "learn/patience.h"
#include "observe/stack.h"

/* A site's number is its place in the table, near the hash of its word. */
enum { PROBES = 16 };

/* Of the looks at requests of a known shape one in so many is at the stack. */
enum { STACK_EVERY = 64 };

/* Of a stack: the library's calls and the program's; so many of the latter are the place. */
enum { CALLS_MOST = 16, PLACE_CALLS = 6 };

/* The shapes of requests that are known, each with the number of its site in the low bits. */
enum { SHAPES = 1024, NUMBER_BITS = 9 };

_Static_assert(SITES == 1 << NUMBER_BITS, "a number fits");

/* Sizes of one shape: there are so many steps in each doubling. */
enum { STEPS = 8 };

/* So many trials are enough; then older ones count for less. */
enum { TRIALS_ENOUGH = 64 };

static uint64_t shapes[SHAPES];

/* What was decided last for each; in observe mode nobody acts on it. */
static uint8_t decided[SITES];

static uint32_t looks;

/* The numbers of all sites, in the order in which they were given; 0: a thread is about to write it. */
static uint16_t given[SITES];
static uint32_t given_count;

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static struct large_site *table(void)
{
    struct large_site *there = load_acquire(&large_sites);
    if (there != NULL)
        return there;
    struct large_site *made = meta_alloc(SITES * sizeof *made);
    if (made != NULL && !__atomic_compare_exchange_n(&large_sites, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        meta_free(made, SITES * sizeof *made);
        return there;
    }
    return made;
}

/* Is the number the word's, or can it be made so? */
static bool is_of(struct large_site *sites, uint32_t number, uintptr_t word)
{
    uintptr_t there = load_relaxed(&sites[number].word);
    if (there != 0 || !__atomic_compare_exchange_n(&sites[number].word, &there, word, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return there == word;
    store_relaxed(&given[add_relaxed(&given_count, 1u)], (uint16_t)number);
    return true;
}

uint32_t sites_number(uintptr_t word)
{
    struct large_site *sites = word != 0 ? table() : NULL;
    if (sites == NULL)
        return SITE_NONE;
    uint32_t hash = (uint32_t)(mix(0, word) >> 32);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        uint32_t number = (hash + probe) % SITES;
        if (number != SITE_NONE && is_of(sites, number, word))
            return number;
    }
    return SITE_NONE;
}

/* What of an address is the same in each run. */
static uintptr_t steady(uintptr_t call)
{
    struct os_module module;
    return os_find_module(call - 1, &module) ? call - module.base : call % 4096;
}

static uintptr_t word_of_stack(const struct os_frame *from)
{
    uintptr_t calls[CALLS_MOST];
    size_t count = stack_take(from, calls, CALLS_MOST);
    size_t first = stack_own_calls(calls, count);
    uint64_t word = count - first;
    for (size_t i = first; i < count && i < first + PLACE_CALLS; i++)
        word = mix(i == first ? 0 : word, steady(calls[i]));
    return count > first ? (uintptr_t)word | 1 : 0;
}

/* Blocks of one site are requested at one depth: what is above is mostly the same then. */
static uint64_t shape_of(const struct site_request *request)
{
    size_t size = max_size(request->size, STEPS); /* what is large for its alignment alone may be of 0 bytes */
    unsigned power = log2_floor(size);
    uint64_t step = (uint64_t)power * STEPS + (size >> (power - 3)) % STEPS;
    return mix(mix(step, request->caller), thread_self() - request->from->sp) << NUMBER_BITS;
}

static bool look_at_stack(void)
{
    return (add_relaxed(&looks, 1u) + 1) % STACK_EVERY == 0;
}

uint32_t sites_of_request(const struct site_request *request)
{
    if (request->word != 0)
        return sites_number(request->word);
    if (!large_site_is_learned() && load_relaxed(&large_sites_special) == 0)
        return SITE_NONE;
    uint64_t shape = shape_of(request);
    uint64_t *place = &shapes[(shape >> 32) % SHAPES];
    uint64_t known = load_acquire(place) ^ shape; /* whoever has stored the number has seen the table */
    if (!request->look || (known < SITES && !look_at_stack()))
        return known < SITES ? (uint32_t)known : SITE_NONE;
    uint32_t number = sites_number(word_of_stack(request->from));
    store_release(place, shape | number);
    return number;
}

static struct trials trials_of(const struct large_site *site)
{
    struct trials trials = {.unwanted = load_relaxed(&site->unwanted)};
    for (unsigned time = 0; time < SITE_TIMES; time++)
        trials.waits[time] = load_relaxed(&site->waits[time]);
    return trials;
}

static void fade(struct large_site *site, const struct trials *trials)
{
    sub_relaxed(&site->unwanted, trials->unwanted / 2);
    for (unsigned time = 0; time < SITE_TIMES; time++)
        sub_relaxed(&site->waits[time], trials->waits[time] / 2);
}

static void set_patience(struct large_site *site, unsigned patience)
{
    uint32_t before = __atomic_exchange_n(&site->patience, patience, __ATOMIC_RELAXED);
    add_relaxed(&large_sites_special, (uint32_t)((patience != 0) - (before != 0)));
}

/* What the epochs have cost so far. Of who ends them. */
static uint64_t cost_ns;

/* Of the whole cost, in millionths, if all of the site's requests are as the trials: which save so much for each MiB, in sum. */
static int64_t gain_of(const struct large_site *site, int64_t saves, uint32_t count)
{
    double each = (double)saves / (double)count;
    double megabytes = (double)load_relaxed(&site->bytes) / (double)MIB;
    double gain = each * megabytes * 1e6 / (double)max_size(cost_ns, 1);
    return gain < 1e6 ? (int64_t)gain : 1000000; /* an estimate may exceed all that there is to save */
}

static uint64_t kept_ms(unsigned patience, uint64_t age_ms)
{
    return patience == PATIENCE_NONE ? 0 : age_ms << patience;
}

static void decide(uint32_t number, struct large_site *site, uint64_t ms)
{
    struct trials trials = trials_of(site);
    uint32_t count = trials_count(&trials);
    unsigned before = load_relaxed(&decided[number]);
    uint64_t age_ms = knob_get(KNOB_BIGCACHE_MS, size_bin(site_mean_bytes(site)));
    uint32_t price_ns = load_relaxed(&policy.memory_price);
    unsigned after = patience_choose(&trials, before, age_ms, price_ns);
    if (after != before) {
        bool applied = load_relaxed(&policy.learn) == LEARN_ON;
        int64_t saves = patience_saves(&trials, after, age_ms, price_ns) - patience_saves(&trials, before, age_ms, price_ns);
        decision_note(&(struct decision){
            .ms = ms,
            .kind = DECIDED_SITE,
            .what = number,
            .before = kept_ms(before, age_ms),
            .after = kept_ms(after, age_ms),
            .evidence = count,
            .gain = gain_of(site, saves, count),
            .subject = load_relaxed(&site->word),
            .applied = applied,
        });
        store_relaxed(&decided[number], (uint8_t)after);
        if (applied)
            set_patience(site, after);
    }
    if (count >= TRIALS_ENOUGH)
        fade(site, &trials);
}

void sites_epoch(uint64_t ms, uint64_t ns, bool decides)
{
    cost_ns += ns;
    struct large_site *sites = load_acquire(&large_sites);
    if (!decides || sites == NULL || !large_site_is_learned())
        return;
    for (uint32_t i = 0; i < load_relaxed(&given_count); i++) {
        uint32_t number = load_relaxed(&given[i]);
        if (number != SITE_NONE)
            decide(number, &sites[number], ms);
    }
}

void sites_each(void (*each)(uint32_t number, const struct large_site *site, void *data), void *data)
{
    const struct large_site *sites = load_acquire(&large_sites);
    for (uint32_t i = 0; sites != NULL && i < load_relaxed(&given_count); i++) {
        uint32_t number = load_relaxed(&given[i]);
        if (number != SITE_NONE)
            each(number, &sites[number], data);
    }
}

static void forget(uint32_t number, const struct large_site *site, void *unused)
{
    (void)site, (void)unused;
    store_relaxed(&decided[number], (uint8_t)0);
    set_patience(&large_sites[number], 0);
}

void sites_reset(void)
{
    sites_each(forget, NULL);
}

void sites_preset(uintptr_t word, unsigned patience)
{
    uint32_t number = patience <= PATIENCE_NONE ? sites_number(word) : SITE_NONE;
    if (number == SITE_NONE)
        return;
    store_relaxed(&decided[number], (uint8_t)patience);
    set_patience(&large_sites[number], patience);
}
