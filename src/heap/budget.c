#include "heap/budget.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/chance.h"
#include "base/float_env.h"
#include "config/policy.h"
#include "os/os.h"

/* Neighbours in the sequence of heaps get numbers far apart. */
#define FAR_APART 0x9e3779b97f4a7c15u

static uint64_t next_random(struct heap *heap)
{
    uint64_t x = heap->random;
    if (x == 0)
        x = (os_random() ^ heap->number * FAR_APART) | 1;
    heap->random = next_xorshift(x);
    return heap->random;
}

/* With a rate of 1 each byte is one. */
static NOINLINE int64_t draw_distance(struct heap *heap, size_t rate)
{
    return rate == 1 ? 1 : (int64_t)(chance_wait(next_random(heap)) * (double)rate) + 1;
}

static COLD void draw_near_sample(struct heap *heap)
{
    struct float_env programs = float_env_begin();
    heap->sample_after = budget_position(heap) + draw_distance(heap, heap->sample_rate) - 1;
    float_env_end(&programs);
}

static void draw_sample(struct heap *heap)
{
    heap->sample_rate = load_relaxed(&policy.profile_bytes);
    heap->sample_after = INT64_MAX;
    if (heap->sample_rate != 0)
        draw_near_sample(heap);
}

void budget_begin(struct heap *heap)
{
    draw_sample(heap);
}

static void move_beat(struct heap *heap)
{
    int64_t interval = (int64_t)load_relaxed(&policy.heartbeat_bytes);
    int64_t beyond = budget_position(heap) - heap->beat_after;
    if (beyond > 0)
        heap->beat_after += (beyond / interval + 1) * interval;
}

void budget_grant(struct heap *heap)
{
    budget_charge_view(heap);
    move_beat(heap);
    if (UNLIKELY(heap->sample_rate != load_relaxed(&policy.profile_bytes) || budget_position(heap) > heap->sample_after))
        draw_sample(heap);
    int64_t nearer = heap->beat_after < heap->sample_after ? heap->beat_after : heap->sample_after;
    int64_t more = nearer - heap->granted;
    owner_add(&heap->view.budget, more);
    owner_add(&heap->granted, more);
}

bool budget_take_sample(struct heap *heap)
{
    if (budget_position(heap) <= heap->sample_after)
        return false;
    bool wanted = heap->sample_rate == load_relaxed(&policy.profile_bytes);
    draw_sample(heap);
    return wanted;
}

/* The position stays the same. */
void budget_hurry(struct heap *heap)
{
    if (heap->view.budget >= 0) {
        (void)owner_subtract(&heap->granted, heap->view.budget + 1);
        store_relaxed(&heap->view.budget, (int64_t)-1);
    }
    if (!budget_is_at_beat(heap))
        heap->beat_after = budget_position(heap) - 1;
}
