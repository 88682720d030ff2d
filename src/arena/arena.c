#include "arena/arena.h"

#include "base/fail.h"
#include "os/os.h"

/* Where a range may lie: a random place in the wide gap between the program and the libraries. A sanitizer's
 * runtime owns the gap, and small address spaces have none this high; then the next row, or anywhere. */
struct layout {
    size_t place_low;   /* lowest place, bytes */
    size_t place_span;  /* places are spread over this, bytes */
    size_t range_most;  /* the range may grow to this, bytes */
};

static const struct layout layouts[] = {
    {.place_low = 32 * TIB, .place_span = 32 * TIB, .range_most = 16 * TIB},
    {.place_low = 64 * GIB, .place_span = 64 * GIB, .range_most = 64 * GIB},
};

enum {
    GROW_TRIES = 64,
    AHEAD_TIMES = 4,
    LIMIT_SHARE = 32, /* a step takes at most this part of RLIMIT_AS */
};

#define GROW_LEAST (16 * MIB)
#define GROW_MOST (16 * GIB)
#define AHEAD_LEAST (16 * GIB)
#define ANYWHERE_MOST (64 * GIB)
#define ANYWHERE_LEAST (32 * MIB)

struct table {
    char *base;
    size_t entry;     /* bytes */
    size_t per_shift; /* one entry per 1 << per_shift bytes of range */
    size_t reserved;  /* bytes */
    size_t committed; /* bytes */
};

enum { TAGS, SPANS, SUPERSLABS, WHOLE, TABLES };

static struct table tables[TABLES] = {
    [TAGS] = {.entry = sizeof(uintptr_t), .per_shift = UNIT_SHIFT},
    [SPANS] = {.entry = sizeof(void *), .per_shift = UNIT_SHIFT},
    [SUPERSLABS] = {.entry = ARENA_SUPERSLAB_ENTRY, .per_shift = SUPERSLAB_SHIFT},
    [WHOLE] = {.entry = sizeof(uint64_t), .per_shift = SUPERSLAB_SHIFT + 5}, /* two words for 64, so that there is one behind the last */
};

static char *range_base; /* where arena.base is going to be */
static size_t range_most; /* bytes */
static bool reserved_whole; /* range and tables are one reservation made at the start */

/* Until the start is seen: NULL, less a base that is NULL, lies in unit 0 of a range whose limit another thread may
 * have set just now. */
static uintptr_t no_tags[1];

struct arena arena = {.tags = no_tags};

static size_t table_bytes(const struct table *table, size_t range)
{
    return align_up((range >> table->per_shift) * table->entry, os_page_size());
}

/* Lays the tables out from `at`, one after another as large as they may become, then the range. */
static void lay_out(char *at, size_t most)
{
    range_most = most;
    for (int i = 0; i < TABLES; i++) {
        tables[i].base = at;
        tables[i].reserved = 0;
        tables[i].committed = 0;
        at += table_bytes(&tables[i], most);
    }
    store_relaxed(&arena.tags, (uintptr_t *)(void *)tables[TAGS].base);
    arena.spans = (void **)(void *)tables[SPANS].base;
    arena.superslabs = tables[SUPERSLABS].base;
    arena.whole = (uint64_t *)(void *)tables[WHOLE].base;
    range_base = (char *)align_up((uintptr_t)at, HUGE_SIZE);
}

static size_t tables_most(size_t most)
{
    size_t bytes = 0;
    for (int i = 0; i < TABLES; i++)
        bytes += table_bytes(&tables[i], most);
    return bytes + HUGE_SIZE;
}

/* The tables are reserved for a longer range than there is, while that costs nothing but address space: a foreign mapping right behind
 * one would end the growth. */
static size_t range_ahead(size_t range)
{
    bool is_limited = os_address_limit() != SIZE_MAX;
    return is_limited ? range : clamp_size(range * AHEAD_TIMES, AHEAD_LEAST, range_most);
}

/* Is more to be reserved for `range` bytes? */
static bool is_short(const struct table *table, size_t range)
{
    return !reserved_whole && table_bytes(table, range) > table->reserved;
}

static bool reserve_up_to(struct table *table, size_t bytes)
{
    if (os_reserve(table->base + table->reserved, bytes - table->reserved) == NULL)
        return false;
    table->reserved = bytes;
    return true;
}

static bool commit_up_to(struct table *table, size_t bytes)
{
    if (bytes <= table->committed)
        return true;
    if (!os_commit(table->base + table->committed, bytes - table->committed))
        return false;
    table->committed = bytes;
    return true;
}

static bool extend_table(struct table *table, size_t range, size_t ahead)
{
    size_t bytes = table_bytes(table, range);
    bool is_reserved = !is_short(table, range) || reserve_up_to(table, table_bytes(table, ahead)) || reserve_up_to(table, bytes);
    return is_reserved && commit_up_to(table, bytes);
}

/* Makes the tables long enough for `range` bytes. */
static bool extend_tables(size_t range)
{
    size_t ahead = 0;
    for (int i = 0; i < TABLES; i++) {
        if (ahead == 0 && is_short(&tables[i], range))
            ahead = range_ahead(range);
        if (!extend_table(&tables[i], range, ahead))
            return false;
    }
    return true;
}

/* Is there room for the tables of the first step at this place? What was found stays reserved. */
static bool try_place(char *at, size_t most)
{
    lay_out(at, most);
    return extend_tables(GROW_LEAST);
}

static bool place_in_gap(void)
{
    if (HAK_SANITIZED)
        return false;
    uint64_t random = os_random();
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        size_t offset = align_down(random % layouts[i].place_span, HUGE_SIZE);
        if (try_place((char *)layouts[i].place_low + offset, layouts[i].range_most))
            return true;
    }
    return false;
}

/* One reservation wherever the kernel likes, for everything there will ever be. */
static bool place_anywhere(void)
{
    size_t limit = os_address_limit();
    size_t most = ANYWHERE_MOST;
    while (most > limit / 4 && most > ANYWHERE_LEAST)
        most /= 2;
    for (; most >= ANYWHERE_LEAST; most /= 2) {
        size_t bytes = most + tables_most(most);
        char *at = os_reserve(NULL, bytes);
        if (at == NULL)
            continue;
        lay_out(at, most);
        reserved_whole = true;
        return true;
    }
    return false;
}

bool arena_init(void)
{
    if (!place_in_gap() && !place_anywhere())
        return false;
    store_release(&arena.base, range_base);
    return true;
}

/* What is reserved here is missing elsewhere when address space is limited: thread stacks come first. */
static size_t step_size(size_t used, size_t need)
{
    size_t share = align_down(os_address_limit() / LIMIT_SHARE, SUPERSLAB_SIZE);
    size_t wanted = clamp_size(align_up(used / 4, SUPERSLAB_SIZE), GROW_LEAST, GROW_MOST);
    return max_size(min_size(wanted, share), need);
}

/* Reserves [at, at + bytes) of the range with its table entries. `taken`: it cannot be reserved. */
static bool reserve_step(char *at, size_t bytes, bool *taken)
{
    size_t end = (size_t)(at - arena.base) + bytes;
    *taken = false;
    if (end > range_most)
        return false;
    if (reserved_whole)
        return extend_tables(end);
    *taken = os_reserve(at, bytes) == NULL;
    if (*taken)
        return false;
    if (extend_tables(end))
        return true;
    os_release(at, bytes);
    return false;
}

/* Anywhere? If not, nothing lies in our way: address space is limited, or there is no memory. */
static bool is_there_space(size_t bytes)
{
    void *somewhere = os_reserve(NULL, bytes);
    if (somewhere == NULL)
        return false;
    os_release(somewhere, bytes);
    return true;
}

bool arena_grow(size_t bytes, void **at, size_t *got)
{
    size_t need = align_up(bytes, SUPERSLAB_SIZE);
    size_t used = arena.limit << POINTER_ALIGN_SHIFT;
    if (need > range_most)
        return false;
    size_t first_step = step_size(used, need);
    /* Something may have been mapped in our way: step over it, further each time. */
    size_t skip = 0;
    for (int attempt = 0; attempt < GROW_TRIES; attempt++) {
        char *place = arena.base + used + skip;
        bool taken;
        for (size_t step = first_step;; step = max_size(need, align_up(step / 2, SUPERSLAB_SIZE))) {
            if (reserve_step(place, step, &taken)) {
                *at = place;
                *got = step;
                store_release(&arena.limit, (used + skip + step) >> POINTER_ALIGN_SHIFT);
                return true;
            }
            if (step == need)
                break;
        }
        if (!taken || !is_there_space(need))
            return false;
        skip = skip == 0 ? SUPERSLAB_SIZE : skip * 2;
        if (skip > range_most / 2)
            return false;
    }
    return false;
}

void arena_assign(void *at, size_t units, uintptr_t tag, void *span)
{
    char *end = (char *)at + (units << UNIT_SHIFT);
    for (char *unit = at; unit < end; unit += UNIT_SIZE)
        arena_assign_unit(unit, tag, span);
}
