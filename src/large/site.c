#include "large/site.h"

#include "base/clock.h"
#include "base/thread.h"

/* The first frees of a site, and then one in so many, are trials. */
enum { FIRST_TRIALS = 8, TRIAL_EVERY = 16 };

struct large_site *large_sites;
uint32_t large_sites_special;

static struct large_site *site_of(const struct large *block)
{
    return load_dependent(&large_sites) + block->site;
}

/* Two threads at once may both be right, and one be forgotten. */
static void note_size(struct large_site *site, size_t size)
{
    size_t least = load_relaxed(&site->least);
    if (least == 0 || size < least)
        store_relaxed(&site->least, size);
    if (size > load_relaxed(&site->most))
        store_relaxed(&site->most, size);
}

void site_note_request(struct large *block, uint32_t number, size_t size)
{
    block->site = number;
    block->kept_for = number;
    struct large_site *site = site_of(block);
    block->born_ms = clock_now_ms();
    block->requester = thread_self();
    add_relaxed(&site->requests, 1u);
    add_relaxed(&site->bytes, size);
    note_size(site, size);
}

static bool is_trial(uint64_t frees)
{
    return large_site_is_learned() && (frees < FIRST_TRIALS || frees % TRIAL_EVERY == 0);
}

void site_note_free(struct large *block)
{
    struct large_site *site = site_of(block);
    uint64_t frees = add_relaxed(&site->frees, 1u);
    if (block->requester != thread_self())
        add_relaxed(&site->remote_frees, 1u);
    add_relaxed(&site->lifetimes[site_time(clock_now_ms() - block->born_ms)], 1u);
    block->is_trial = is_trial(frees);
    bool longest = block->is_trial && load_relaxed(&policy.learn) == LEARN_ON;
    block->patience = longest ? PATIENCE_MOST : (uint8_t)load_relaxed(&site->patience);
}

void site_forget(struct large *block)
{
    if (block->is_trial)
        add_relaxed(&site_of(block)->waits[site_time(clock_now_ms() - block->freed_ms)], 1u);
    block->site = SITE_NONE;
    block->kept_for = SITE_NONE;
    block->patience = 0;
    block->is_trial = false;
}

void site_note_unwanted(const struct large *block)
{
    add_relaxed(&site_of(block)->unwanted, 1u);
}
