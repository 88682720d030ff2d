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

/* Of a word, the bits whose superslabs' addresses are multiples of `align` superslabs: the same in each word. */
static uint64_t aligned_bits(size_t align)
{
    uint64_t multiples = (uint64_t)multiples128((unsigned)align);
    return multiples << aligned_index(0, align);
}

/* Of up to as many as a word has bits, both of them. */
static size_t find_short(size_t count, size_t align)
{
    uint64_t places = aligned_bits(align);
    for (size_t word = search_from / WORD_BITS; word * WORD_BITS < superslab_end; word++) {
        if ((*word_at(word) & places) == 0)
            continue;
        bits128 here = (bits128)*word_at(word + 1) << WORD_BITS | *word_at(word);
        uint64_t starts = (uint64_t)run_starts128(here, (unsigned)count) & places;
        if (starts != 0)
            return word * WORD_BITS + (size_t)__builtin_ctzll(starts);
    }
    return SIZE_MAX;
}

/* The next that is whole, or is not, from `index` on; or the end. */
static size_t next_that_is(bool whole, size_t index)
{
    while (index < superslab_end) {
        uint64_t bits = *word_at(index / WORD_BITS);
        uint64_t left = (whole ? bits : ~bits) >> index % WORD_BITS;
        if (left != 0)
            return min_size(index + (size_t)__builtin_ctzll(left), superslab_end);
        index = (index / WORD_BITS + 1) * WORD_BITS;
    }
    return superslab_end;
}

static size_t end_of_committed(size_t index, size_t end)
{
    while (index < end && superslab_at(index)->committed)
        index++;
    return index;
}

static COLD size_t find_long(size_t count, size_t align, bool committed)
{
    for (size_t start = aligned_index(search_from, align); start + count <= superslab_end;) {
        size_t end = min_size(next_that_is(false, start), start + count);
        if (committed)
            end = end_of_committed(start, end);
        if (end == start + count)
            return start;
        start = aligned_index(next_that_is(true, end + 1), align);
    }
    return SIZE_MAX;
}

size_t superslab_find_run(size_t count, size_t align, bool committed)
{
    search_from = next_that_is(true, search_from);
    bool is_short = count <= WORD_BITS && align <= WORD_BITS;
    return is_short && !committed ? find_short(count, align) : find_long(count, align, committed);
}
