#include "grains.h"

#include <string.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "check.h"
#include "span/limit.h"
#include "span/span.h"

enum { GRAINS_MOST = 1 << 18 };

size_t grain_bytes;
size_t superslab_grains;

static size_t units_in_grain;
static bool taken[GRAINS_MOST]; /* by index of grain */
static size_t taken_count;

/* Where grains are written to and looked at: both ends and a word within. */
enum { PLACES = 3 };
static size_t places[PLACES];

void grains_init(void)
{
    size_class_init();
    CHECK(arena_init());
    units_in_grain = units_per_page();
    grain_bytes = units_in_grain * UNIT_SIZE;
    superslab_grains = SUPERSLAB_UNITS / units_in_grain;
    places[1] = grain_bytes / 4 * 3 + 8;
    places[2] = grain_bytes - sizeof(uint64_t);
}

char *grains_take(size_t grains, size_t align, bool *zero)
{
    return span_take(grains * units_in_grain, align * units_in_grain, zero);
}

void grains_give(char *at, size_t grains, bool dirty)
{
    span_give(at, grains * units_in_grain, dirty);
}

bool grains_extend(char *end, size_t grains, bool *zero)
{
    return span_extend(end, grains * units_in_grain, zero);
}

char *grains_take_any(size_t grains)
{
    bool zero;
    char *at = grains_take(grains, 1, &zero);
    CHECK(at != NULL);
    return at;
}

void grains_abandon(size_t grains)
{
    span_abandon(grains * units_in_grain);
    taken_count -= grains;
}

size_t grains_as_limit(size_t grains)
{
    return grains * grain_bytes + meta_committed();
}

size_t grain_of(const char *at)
{
    return arena_unit(at) / units_in_grain;
}

void grains_mark_taken(const char *at, size_t grains, bool now)
{
    for (size_t grain = grain_of(at); grain < grain_of(at) + grains; grain++) {
        CHECK(grain < GRAINS_MOST);
        CHECK(taken[grain] != now);
        taken[grain] = now;
    }
    taken_count += now ? grains : 0 - grains;
}

size_t grains_taken(void)
{
    return taken_count;
}

void grains_check_stats(void)
{
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.used_bytes == taken_count * grain_bytes);
    CHECK(stats.committed_bytes >= stats.used_bytes + stats.dirty_bytes);
    CHECK(stats.reserved_bytes >= stats.committed_bytes);
    /* After a refused purge more counts than is in the queue. */
    size_t held = limit_held() - meta_committed();
    CHECK(held >= stats.used_bytes + stats.dirty_bytes);
    CHECK(held <= stats.committed_bytes);
}

void grains_write_words(char *at, size_t grains, uint64_t word)
{
    for (size_t grain = 0; grain < grains; grain++)
        for (size_t i = 0; i < PLACES; i++)
            memcpy(at + grain * grain_bytes + places[i], &word, sizeof word);
}

void grains_check_words(const char *at, size_t grains, uint64_t word)
{
    for (size_t grain = 0; grain < grains; grain++) {
        for (size_t i = 0; i < PLACES; i++) {
            uint64_t found;
            memcpy(&found, at + grain * grain_bytes + places[i], sizeof found);
            CHECK(found == word);
        }
    }
}
