#include "observe/profile_sites.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/chance.h"
#include "base/float_env.h"
#include "config/size_class.h"
#include "observe/profile_memory.h"
#include "os/os.h"

enum {
    BUCKET_BITS = 14,
    CHUNK_SITES = 256,
    CHUNKS = 512, /* some 130,000 sites */
    SAMPLES_AT_ONCE = 256,
};

#define BUCKETS_BYTES (sizeof(void *) << BUCKET_BITS)

struct profile_totals profile_totals;

static struct site **buckets;
static struct site *chunks[CHUNKS];
static struct sample *unused;

bool sites_begin(size_t rate, uint64_t now_ms)
{
    uint32_t profile = profile_totals.profile + 1;
    if (buckets == NULL)
        buckets = profile_alloc(BUCKETS_BYTES);
    if (buckets == NULL)
        return false;
    memset(buckets, 0, BUCKETS_BYTES);
    profile_totals = (struct profile_totals){.rate = rate, .profile = profile, .started_ms = now_ms};
    return true;
}

/* Each size class is one; of large sizes there are four for each doubling. The smallest are one each: they are many times each other's. */
static uint32_t sizes_with(size_t size)
{
    enum { OF_LARGE = 64 * 4, OF_THEIR_OWN = 16 };
    if (size <= OF_THEIR_OWN)
        return SIZE_CLASSES + OF_LARGE + (uint32_t)size;
    if (size <= SMALL_MAX)
        return size_class_fixed(size);
    unsigned power = log2_floor(size);
    return SIZE_CLASSES + power * 4 + (uint32_t)(size >> (power - 2) & 3);
}

static struct site *fresh_site(void)
{
    uint32_t number = profile_totals.sites;
    if (number == CHUNKS * CHUNK_SITES)
        return NULL;
    struct site **chunk = &chunks[number / CHUNK_SITES];
    if (*chunk == NULL)
        *chunk = profile_alloc(CHUNK_SITES * sizeof(struct site));
    return *chunk != NULL ? &(*chunk)[number % CHUNK_SITES] : NULL;
}

static struct site *site_of(uint32_t stack, uint32_t sizes)
{
    struct site **bucket = &buckets[(stack * 64 + sizes) * 0x9e3779b1u >> (32 - BUCKET_BITS)];
    for (struct site *site = *bucket; site != NULL; site = site->next)
        if (site->stack == stack && site->sizes == sizes)
            return site;
    struct site *site = fresh_site();
    if (site == NULL)
        return NULL;
    *site = (struct site){.next = *bucket, .stack = stack, .sizes = sizes, .peak_number = profile_totals.peak_number};
    *bucket = site;
    owner_add(&profile_totals.sites, 1u);
    return site;
}

static struct sample *take_record(void)
{
    if (unused == NULL) {
        struct sample *more = profile_alloc(SAMPLES_AT_ONCE * sizeof *more);
        for (int i = 0; more != NULL && i < SAMPLES_AT_ONCE; i++) {
            more[i].next = unused;
            unused = &more[i];
        }
    }
    struct sample *sample = unused;
    if (sample != NULL)
        unused = sample->next;
    return sample;
}

static void give_record(struct sample *sample)
{
    sample->next = unused;
    unused = sample;
}

static NOINLINE uint64_t compute_weight(size_t size)
{
    size_t rate = profile_totals.rate;
    return rate == 1 || size == 0 ? size : (uint64_t)((double)size / chance_within((double)size / (double)rate));
}

static uint64_t weight_of(size_t size)
{
    struct float_env programs = float_env_begin();
    uint64_t weight = compute_weight(size);
    float_env_end(&programs);
    return weight;
}

/* Before what is live changes: was there a peak since it did the last time? */
static void note_peak(struct site *site)
{
    if (site->peak_number != profile_totals.peak_number)
        site->peak = site->live;
    site->peak_number = profile_totals.peak_number;
}

static void add(struct profile_sum *sum, size_t size)
{
    owner_add(&sum->count, 1u);
    owner_add(&sum->bytes, size);
}

static void subtract(struct profile_sum *sum, size_t size)
{
    (void)owner_subtract(&sum->count, 1u);
    (void)owner_subtract(&sum->bytes, size);
}

/* A peak costs nothing: sites notice it when they change. */
static void weigh(uint64_t before, uint64_t now)
{
    owner_add(&profile_totals.live_weight, now - before);
    if (profile_totals.live_weight > profile_totals.peak_weight) {
        store_relaxed(&profile_totals.peak_weight, profile_totals.live_weight);
        profile_totals.peak_number++;
    }
}

struct sample *sites_add(uint32_t stack, size_t size, uint64_t now_ms)
{
    struct sample *sample = take_record();
    struct site *site = sample != NULL ? site_of(stack, sizes_with(size)) : NULL;
    if (site == NULL) {
        if (sample != NULL)
            give_record(sample);
        return NULL;
    }
    *sample = (struct sample){
        .site = site,
        .origin = site,
        .size = size,
        .most = size,
        .weight = weight_of(size),
        .born_ms = now_ms,
        .profile = profile_totals.profile,
    };
    note_peak(site);
    add(&site->live, size);
    add(&site->allocated, size);
    add(&profile_totals.live, size);
    add(&profile_totals.allocated, size);
    owner_add(&profile_totals.requests, size == 0 ? 1 : (sample->weight + size / 2) / size);
    weigh(0, sample->weight);
    return sample;
}

static bool is_counted(const struct sample *sample)
{
    return sample->profile == profile_totals.profile;
}

/* Sizes of a site differ by little, so a sample of another size is another site's; where there is no memory for that it stays. */
static void move_live(struct sample *sample, size_t size)
{
    struct site *from = sample->site;
    uint32_t sizes = sizes_with(size);
    struct site *to = from->sizes != sizes ? site_of(from->stack, sizes) : NULL;
    note_peak(from);
    if (to == NULL)
        to = from;
    else
        note_peak(to);
    subtract(&from->live, sample->size);
    add(&to->live, size);
    sample->site = to;
}

/* Of what has grown, all is requested. */
static void move_allocated(struct sample *sample, size_t size)
{
    subtract(&sample->origin->allocated, sample->most);
    add(&sample->site->allocated, size);
    owner_add(&profile_totals.allocated.bytes, size - sample->most);
    sample->origin = sample->site;
    sample->most = size;
}

static double next_uniform(void)
{
    static uint64_t random;
    if (random == 0)
        random = os_random() | 1;
    random = next_xorshift(random);
    return (double)(random >> 11) / (double)((uint64_t)1 << 53);
}

static NOINLINE bool draw(size_t before, size_t size)
{
    double rate = (double)profile_totals.rate;
    return next_uniform() * chance_within((double)before / rate) < chance_within((double)size / rate);
}

/* It was drawn as one of its size: as one of fewer bytes it would have been less often. */
static bool is_drawn_again(const struct sample *sample, size_t size)
{
    if (size >= sample->size || profile_totals.rate == 1)
        return true;
    struct float_env programs = float_env_begin();
    bool again = draw(sample->size, size);
    float_env_end(&programs);
    return again;
}

static void leave_live(struct sample *sample)
{
    note_peak(sample->site);
    subtract(&sample->site->live, sample->size);
    subtract(&profile_totals.live, sample->size);
    weigh(sample->weight, 0);
}

struct sample *sites_resize(struct sample *sample, size_t size)
{
    if (is_counted(sample) && !is_drawn_again(sample, size)) {
        leave_live(sample);
        give_record(sample);
        return NULL;
    }
    if (is_counted(sample)) {
        uint64_t before = sample->weight;
        move_live(sample, size);
        if (size > sample->most)
            move_allocated(sample, size);
        owner_add(&profile_totals.live.bytes, size - sample->size);
        sample->weight = weight_of(size);
        weigh(before, sample->weight);
    }
    sample->size = size;
    return sample;
}

static unsigned lifetime_of(uint64_t ms)
{
    unsigned bin = 0;
    for (uint64_t below = 1; bin < LIFETIMES - 1 && ms >= below; below *= 10)
        bin++;
    return bin;
}

void sites_remove(struct sample *sample, uint64_t now_ms)
{
    if (is_counted(sample)) {
        leave_live(sample);
        sample->origin->lifetimes[lifetime_of(now_ms - sample->born_ms)]++;
    }
    give_record(sample);
}

void sites_copy(uint32_t i, struct site *site)
{
    *site = chunks[i / CHUNK_SITES][i % CHUNK_SITES];
    note_peak(site);
}
