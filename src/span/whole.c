/* Superslabs that are wholly free and the pool's: a bit each, so that a run of them is found without a look at their records. */
#include "span/superslab.h"

enum { WORD_BITS = 64 };

/* The first words lie here: a small process touches no page of the arena's table for them. */
enum { FIRST_WORDS = 64 };
static uint64_t first_words[FIRST_WORDS];

/* Superslabs are looked for from here: all below are known not to be wholly free. */
static size_t search_from;

static uint64_t *word_at(size_t word)
{
    return word < FIRST_WORDS ? &first_words[word] : &arena.whole[word];
}

static bool is_whole(size_t index)
{
    return (*word_at(index / WORD_BITS) >> index % WORD_BITS & 1) != 0;
}

void superslab_note_whole(size_t index, bool whole)
{
    uint64_t *word = word_at(index / WORD_BITS);
    uint64_t bit = (uint64_t)1 << index % WORD_BITS;
    *word = whole ? *word | bit : *word & ~bit;
    if (whole && index < search_from)
        search_from = index;
}

/* The first index from `index` on whose superslab's address is a multiple of `align` superslabs. */
static size_t aligned_index(size_t index, size_t align)
{
    size_t first = (uintptr_t)arena.base >> SUPERSLAB_SHIFT;
    return align_up(first + index, align) - first;
}

/* Of up to as many as a word has bits; anywhere. */
static size_t find_short(size_t count)
{
    for (size_t word = search_from / WORD_BITS; word * WORD_BITS < superslab_end; word++) {
        bits128 here = (bits128)*word_at(word + 1) << WORD_BITS | *word_at(word);
        uint64_t starts = (uint64_t)run_starts128(here, (unsigned)count);
        if (starts != 0)
            return word * WORD_BITS + (size_t)__builtin_ctzll(starts);
    }
    return SIZE_MAX;
}

static COLD size_t find_one_by_one(size_t count, size_t align, bool committed)
{
    size_t start = aligned_index(search_from, align);
    for (size_t i = start; start + count <= superslab_end;) {
        if (!is_whole(i) || (committed && !superslab_at(i)->committed)) {
            start = aligned_index(i + 1, align);
            i = start;
        } else if (++i == start + count) {
            return start;
        }
    }
    return SIZE_MAX;
}

size_t superslab_find_run(size_t count, size_t align, bool committed)
{
    while (search_from < superslab_end && !is_whole(search_from))
        search_from++;
    if (count <= WORD_BITS && align == 1 && !committed)
        return find_short(count);
    return find_one_by_one(count, align, committed);
}
