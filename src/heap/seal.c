#include "heap/seal.h"

#include <string.h>

#include "base/bits.h"
#include "base/zero.h"
#include "heap/report.h"
#include "os/os.h"
#include "slab/slab.h"

/* A seal is the key of its block, with the bytes between what was asked for and the seal in its middle bits: what strays
 * into it from either side meets others first. */
enum { UNUSED_SHIFT = 24 };

static uint64_t mask;
static uint64_t factor;

/* No live block has so many. */
#define UNUSED_IF_FREE UINT64_MAX

void seal_start(void)
{
    mask = os_random();
    factor = os_random() | 1;
}

static uint64_t key_of(const void *p)
{
    return ((uintptr_t)p ^ mask) * factor;
}

static uint64_t *word_of(const void *p, unsigned class)
{
    return (uint64_t *)((uintptr_t)p + seal_room(class));
}

static uint64_t seal_of(const void *p, uint64_t unused)
{
    return key_of(p) ^ rotate_right(unused, 64 - UNUSED_SHIFT);
}

static bool is_free(const void *p, unsigned class)
{
    uint64_t seal = *word_of(p, class);
    return seal == seal_of(p, UNUSED_IF_FREE) || seal == 0;
}

void seal_live(void *p, unsigned class, size_t size)
{
    size_t room = seal_room(class);
    if (class == ZERO_CLASS)
        return;
    if (UNLIKELY(!is_free(p, class) || !is_zero(p, room)))
        report_pointer(FAULT_WRITE_AFTER_FREE, p);
    *word_of(p, class) = seal_of(p, room - size);
}

/* One that begins in one unit and ends in the next, where there may be nothing, or has no seal, is looked up. */
static bool may_be_block(const void *p, unsigned class)
{
    size_t offset = (uintptr_t)p & (UNIT_SIZE - 1);
    return (class != ZERO_CLASS && offset + size_classes[class].size <= UNIT_SIZE) || slab_holds(arena_span(p), p);
}

/* What it means that there is no seal of a live block. */
static _Noreturn COLD void report_seal(const void *p, unsigned class, const char *if_free)
{
    if (!slab_holds(arena_span(p), p))
        report_pointer(FAULT_INVALID_FREE, p);
    report_pointer(is_free(p, class) ? if_free : FAULT_OVERFLOW, p);
}

size_t seal_size(const void *p, unsigned class, const char *if_free)
{
    size_t room = seal_room(class);
    if (UNLIKELY(!may_be_block(p, class)))
        report_pointer(FAULT_INVALID_FREE, p);
    if (class == ZERO_CLASS)
        return 0;
    uint64_t unused = rotate_right(*word_of(p, class) ^ key_of(p), UNUSED_SHIFT);
    if (UNLIKELY(unused > room))
        report_seal(p, class, if_free);
    if (UNLIKELY(!is_zero((const char *)p + (room - unused), unused)))
        report_pointer(FAULT_OVERFLOW, p);
    return room - unused;
}

void seal_free(void *p, unsigned class, size_t size)
{
    if (class == ZERO_CLASS)
        return;
    memset(p, 0, size);
    *word_of(p, class) = seal_of(p, UNUSED_IF_FREE);
}

void seal_resize(void *p, unsigned class, size_t size)
{
    size_t before = seal_size(p, class, FAULT_USE_AFTER_FREE);
    if (class == ZERO_CLASS)
        return;
    if (size < before)
        memset((char *)p + size, 0, before - size);
    *word_of(p, class) = seal_of(p, seal_room(class) - size);
}
