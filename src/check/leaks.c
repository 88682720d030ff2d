#include "check/leaks.h"

#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/fail.h"
#include "check/run.h"
#include "check/stack_text.h"
#include "large/large.h"
#include "observe/depot.h"
#include "observe/stack.h"
#include "os/frame.h"
#include "os/os.h"
#include "os/roots.h"

/* Leaks from more places than these are summed up. */
enum { PLACES_MOST = 4096, PLACES_WRITTEN_MOST = 32 };

/* Of blocks from there on only what was written is read: a table of many GiB may be empty, and to read it would take page tables and
 * time. */
#define SPARSE_LEAST (1 * MIB)

/* The least page: blocks from there on may have some that the program has closed, and are copied by the kernel. */
#define LEAST_PAGE (4 * KIB)

struct place {
    uint32_t stack;
    bool indirect;
    size_t blocks;
    size_t bytes;
};

static struct search {
    struct checked *gray; /* found, and not yet looked into */
    enum checked_reach reach;
    char copy[64 * KIB] ALIGNED(8);
    struct place place[PLACES_MOST];
    size_t places;
    size_t left_out_blocks; /* from other places */
    size_t left_out_bytes;
} search;

static void follow(uintptr_t word)
{
    struct checked *block = run_find((const void *)word);
    if (block == NULL || block->state != CHECKED_LIVE || block->reach != REACH_NONE)
        return;
    if (word - (uintptr_t)checked_start(block) >= max_size(block->size, 1))
        return;
    block->reach = (uint8_t)search.reach;
    block->next = search.gray;
    search.gray = block;
}

static void look_at_words(const char *at, size_t bytes)
{
    uintptr_t word;
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, at + i, sizeof word);
        follow(word);
    }
}

/* Of memory that may not be there. */
static void look_at_copy(uintptr_t start, uintptr_t end)
{
    size_t page = os_page_size();
    while (start < end) {
        size_t got = os_read(start, search.copy, min_size(end - start, sizeof search.copy));
        look_at_words(search.copy, got);
        start = got > 0 ? start + got : align_down(start, page) + page;
    }
}

static void look_at_written(uintptr_t start, uintptr_t end, void *argument)
{
    (void)argument;
    look_at_copy(start, end);
}

static void look_at_block(uintptr_t start, size_t bytes)
{
    if (bytes < SPARSE_LEAST)
        look_at_copy(start, start + bytes);
    else
        os_each_written(start, start + bytes, look_at_written, NULL);
}

static void look_into_found(void)
{
    while (search.gray != NULL) {
        const struct checked *block = search.gray;
        const char *start = checked_start(block);
        search.gray = block->next;
        if (block->size < LEAST_PAGE)
            look_at_words(start, block->size);
        else
            look_at_block((uintptr_t)start, block->size);
    }
}

/* But for the heap's own range, which is looked at by blocks. */
static void look_at_root(uintptr_t start, uintptr_t end, void *argument)
{
    (void)argument;
    uintptr_t own = (uintptr_t)arena.base;
    uintptr_t own_end = own + (arena.limit << POINTER_ALIGN_SHIFT);
    look_at_copy(start, min_size(end, max_size(start, own)));
    look_at_copy(max_size(start, min_size(end, own_end)), end);
}

/* Blocks from before check mode, whose state is not known: all are roots. */
static void look_at_unchecked(void)
{
    size_t units = arena.limit >> (UNIT_SHIFT - POINTER_ALIGN_SHIFT);
    for (size_t unit = 0; unit < units; unit++) {
        uintptr_t tag = load_acquire(&arena.tags[unit]);
        uintptr_t start = (uintptr_t)arena.base + (unit << UNIT_SHIFT);
        if (arena_is_slab(tag)) {
            look_at_copy(start, start + UNIT_SIZE);
        } else if (tag == TAG_LARGE) {
            const struct large *block = load_relaxed(&arena.spans[unit]);
            size_t bytes = block != NULL ? load_relaxed(&block->bytes) : 0;
            /* Else another thread is just giving it up, and the record is another's. */
            if (bytes != 0 && load_acquire(&arena.tags[unit]) == tag && load_relaxed(&arena.spans[unit]) == block)
                look_at_block(start, min_size(bytes, (units - unit) << UNIT_SHIFT));
        }
    }
}

/* Its place in the table, or a free one. One is always free. */
static struct place *find_place(uint32_t stack, bool indirect)
{
    size_t at = (stack * 2 + indirect) * 0x9e3779b1u % PLACES_MOST;
    struct place *place = &search.place[at];
    while (place->blocks > 0 && (place->stack != stack || place->indirect != indirect)) {
        at = (at + 1) % PLACES_MOST;
        place = &search.place[at];
    }
    return place;
}

static void add_to_place(const struct checked *block, bool indirect)
{
    struct place *place = find_place(block->allocated.stack, indirect);
    if (place->blocks == 0) {
        if (search.places == PLACES_MOST - 1) {
            search.left_out_blocks++;
            search.left_out_bytes += block->size;
            return;
        }
        search.places++;
        *place = (struct place){.stack = block->allocated.stack, .indirect = indirect};
    }
    place->blocks++;
    place->bytes += block->size;
}

static void each_block(struct run *run, void *argument)
{
    void (*look)(struct checked *) = *(void (**)(struct checked *))argument;
    for (uint32_t i = 0; i < run->blocks; i++)
        if (run->block[i].state == CHECKED_LIVE)
            look(&run->block[i]);
}

static void for_all(void (*look)(struct checked *))
{
    run_each_locked(each_block, &look);
}

static void forget(struct checked *block)
{
    block->reach = REACH_NONE;
}

/* What a fork's parent has allocated is the parent's: the child has not its threads, which may have held it. */
static bool is_own(const struct checked *block)
{
    return block->generation == run_generation();
}

/* What it leads to, and nothing else does, is leaked because of it. */
static void look_into_leaked(struct checked *block)
{
    if (block->reach != REACH_NONE || !is_own(block))
        return;
    block->reach = REACH_LEAKED; /* so that it is not found from itself */
    block->next = NULL;
    search.gray = block;
    look_into_found();
    block->reach = REACH_NONE;
}

static void count(struct checked *block)
{
    if (block->reach != REACH_ROOTS && is_own(block))
        add_to_place(block, block->reach == REACH_LEAKED);
}

static struct place *largest(bool indirect)
{
    struct place *found = NULL;
    for (struct place *place = search.place; place < search.place + PLACES_MOST; place++)
        if (place->blocks > 0 && place->indirect == indirect && (found == NULL || place->bytes > found->bytes))
            found = place;
    return found;
}

static void write_place(struct place *place)
{
    size_t calls;
    const uintptr_t *stack = depot_get(place->stack, &calls);
    note("%s leak of %zu byte(s) in %zu object(s) allocated from:", place->indirect ? "Indirect" : "Direct", place->bytes,
         place->blocks);
    if (calls > 0)
        stack_write(stack, calls);
    else
        note("    (no stack was taken)");
    note("%s", "");
    place->blocks = 0;
}

static void write_all(void)
{
    size_t bytes = search.left_out_bytes;
    size_t blocks = search.left_out_blocks;
    size_t written = 0;
    for (size_t i = 0; i < PLACES_MOST; i++) {
        bytes += search.place[i].bytes;
        blocks += search.place[i].blocks;
    }
    if (bytes == 0 && blocks == 0)
        return;
    note("==%d==ERROR: hakmem: detected memory leaks\n", (int)getpid());
    for (int indirect = 0; indirect < 2; indirect++)
        for (struct place *place; written < PLACES_WRITTEN_MOST && (place = largest(indirect != 0)) != NULL; written++)
            write_place(place);
    if (written < search.places)
        note("and from %s%zu other places\n", search.left_out_blocks > 0 ? "more than " : "", search.places - written);
    note("SUMMARY: hakmem: %zu byte(s) leaked in %zu allocation(s)", bytes, blocks);
}

/* Where the kernel refuses that, everything would seem lost. */
static bool can_copy(void)
{
    uintptr_t word = 1;
    uintptr_t copy = 0;
    return os_read((uintptr_t)&word, &copy, sizeof copy) == sizeof copy;
}

void leaks_report(void)
{
    struct os_frame here = os_frame_here();
    __builtin_unwind_init(); /* the caller's registers, to the stack */
    search.reach = REACH_ROOTS;
    search.places = search.left_out_blocks = search.left_out_bytes = 0;
    memset(search.place, 0, sizeof search.place);
    run_lock_all();
    stack_forget();
    bool looked = can_copy() && os_each_root(here.sp, look_at_root, NULL);
    if (looked) {
        look_at_unchecked();
        look_into_found();
        search.reach = REACH_LEAKED;
        for_all(look_into_leaked);
        for_all(count);
    }
    for_all(forget);
    run_unlock_all();
    /* Only now: a thread of the program's may be who reads it, and allocate. */
    if (looked)
        write_all();
    else
        warn("leaks are not looked for: /proc/self/maps cannot be read, or process_vm_readv is refused");
}
