#include "phases.h"

#include "more_phases.h"
#include "random.h"

#include <time.h>

enum { KEPT_OF = 20, CYCLES_MOST = 8, STRINGS = 64, STRING_MOST = 65536 };

static void grow(struct hand *hand)
{
    while (hand->ledger.bytes < hand->share && hand_make_any(hand)) {
    }
}

/* All but one in twenty, in random order. */
static void thin(struct hand *hand)
{
    grow(hand);
    const size_t kept = hand->ledger.count / KEPT_OF;
    while (hand->ledger.count > kept) {
        hand_free(hand, random_below(&hand->random, hand->ledger.count));
    }
}

static void churn(struct hand *hand)
{
    hand_churn(hand, hand->work);
}

/* Half of the share again and again, of about one size each time, freed from the front, the back or at random. */
static void oscillate(struct hand *hand)
{
    uint64_t *random = &hand->random;
    const size_t before = hand->ledger.count;
    for (size_t cycles = 2 + random_below(random, CYCLES_MOST - 1); cycles > 0; cycles--) {
        const size_t size = (size_t)16 << random_below(random, 12);
        const size_t order = random_below(random, 3);
        const size_t enough = hand->ledger.bytes + hand->share / 2;
        for (size_t i = 0; i < hand->work && hand->ledger.bytes < enough; i++) {
            if (!hand_make(hand, BLOCK_MALLOC, size + random_below(random, size / 4), 0)) {
                break;
            }
        }
        while (hand->ledger.count > before) {
            const size_t own = hand->ledger.count - before;
            hand_free(hand, before + (order == 0 ? 0 : order == 1 ? own - 1 : random_below(random, own)));
        }
    }
}

/* Memory that was dirty just before. */
static void zeroed(struct hand *hand)
{
    uint64_t *random = &hand->random;
    const size_t before = hand->ledger.count;
    for (size_t i = 0; i < hand->work / 4; i++) {
        const size_t size = 1 + random_below(random, (size_t)64 << random_below(random, random_below(random, 16) + 1));
        (void)hand_make(hand, random_below(random, 3) == 0 ? BLOCK_MALLOC : BLOCK_CALLOC, size, 0);
        const size_t own = hand->ledger.count - before;
        if (own > 0 && (own > 64 || hand->ledger.bytes > 2 * hand->share)) {
            hand_free(hand, before + random_below(random, own));
        }
    }
}

static void aligned(struct hand *hand)
{
    uint64_t *random = &hand->random;
    for (size_t i = 0; i < hand->work / 4; i++) {
        const size_t alignment = (size_t)1 << random_below(random, random_below(random, 22) + 1);
        (void)hand_make(hand, BLOCK_ALIGNED, 1 + hand_size(hand), alignment);
        while (hand->ledger.bytes > hand->share || hand->ledger.count > hand->work) {
            hand_free(hand, random_below(random, hand->ledger.count));
        }
    }
}

/* Several at once, so that what follows one in memory is another. */
static void strings(struct hand *hand)
{
    uint64_t *random = &hand->random;
    struct ledger *ledger = &hand->ledger;
    const size_t before = ledger->count;
    for (size_t i = 0; i < hand->work / 2; i++) {
        const size_t own = ledger->count - before;
        const size_t index = before + random_below(random, own + 1);
        if (own < STRINGS && index == ledger->count) {
            (void)hand_make(hand, BLOCK_REALLOC, 1 + random_below(random, 64), 0);
        } else if (index < ledger->count && ledger->blocks[index].size > STRING_MOST) {
            hand_free(hand, index);
        } else if (index < ledger->count) {
            const size_t size = ledger->blocks[index].size;
            (void)ledger_resize(ledger, index, size + 1 + random_below(random, 32 + size / 4), random);
        }
    }
}

static void idle(struct hand *hand)
{
    const size_t ms = random_below(&hand->random, hand->idle_most_ms + 1);
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

const struct phase phase_grow = {"grow", grow};
const struct phase phase_idle = {"idle", idle};

const struct phase *phase_any(uint64_t *random, bool forks)
{
    static const struct phase phases[] = {
        {"grow", grow},       {"thin", thin},       {"churn", churn},         {"oscillate", oscillate},
        {"large", phase_large}, {"zeroed", zeroed}, {"aligned", aligned},     {"strings", strings},
        {"idle", idle},       {"purge", phase_purge}, {"threads", phase_threads}, {"switch", phase_switch},
        {"fork", phase_fork},
    };
    const size_t count = sizeof phases / sizeof phases[0];
    return &phases[random_below(random, forks ? count : count - 1)];
}
