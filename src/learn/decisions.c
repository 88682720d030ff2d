#include "learn/decisions.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"

enum { WORDS = sizeof(struct decision) / sizeof(uint64_t) };

/* The n-th decision, from 0, lies in slot n % DECISIONS_KEPT, whose sequence is 2n + 1 while it is written and 2n + 2
 * afterwards. */
struct slot {
    uint64_t sequence;
    uint64_t words[WORDS];
};

static struct slot slots[DECISIONS_KEPT];
static uint64_t noted;

_Static_assert(sizeof(struct decision) % sizeof(uint64_t) == 0 && _Alignof(struct decision) == _Alignof(uint64_t),
               "decisions are copied by words");

/* Each word is stored after the odd sequence, and loaded before the second look at it. */
void decision_note(const struct decision *decision)
{
    uint64_t words[WORDS];
    uint64_t n = add_relaxed(&noted, 1u);
    struct slot *slot = &slots[n % DECISIONS_KEPT];
    uint64_t before = load_relaxed(&slot->sequence);
    memcpy(words, decision, sizeof words);
    if (before % 2 != 0
        || !__atomic_compare_exchange_n(&slot->sequence, &before, 2 * n + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    for (size_t i = 0; i < WORDS; i++)
        store_release(&slot->words[i], words[i]);
    store_release(&slot->sequence, 2 * n + 2);
}

bool decision_get(uint64_t n, struct decision *to)
{
    uint64_t words[WORDS];
    const struct slot *slot = &slots[n % DECISIONS_KEPT];
    if (load_acquire(&slot->sequence) != 2 * n + 2)
        return false;
    for (size_t i = 0; i < WORDS; i++)
        words[i] = load_acquire(&slot->words[i]);
    if (load_relaxed(&slot->sequence) != 2 * n + 2)
        return false;
    memcpy(to, words, sizeof words);
    return true;
}

uint64_t decisions_noted(void)
{
    return load_relaxed(&noted);
}

size_t decisions_copy(struct decision *to, size_t most)
{
    uint64_t end = load_relaxed(&noted);
    size_t count = 0;
    most = min_size(most, DECISIONS_KEPT);
    for (uint64_t n = end > most ? end - most : 0; n < end; n++)
        count += decision_get(n, &to[count]) ? 1 : 0;
    return count;
}
