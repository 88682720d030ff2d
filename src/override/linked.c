#include "override/linked.h"

#include <stdbool.h>
#include <stdlib.h>

#include "api/hot.h"
#include "base/atomic.h"
#include "base/bits.h"

_Static_assert(SIZE_UNKNOWN == LINKED_SIZE_UNKNOWN, "the two are one");

/* Other names of ours (libc.c), which is not there if a program's own takes its place in the link. */
extern WEAK void *own_malloc(size_t size) HIDDEN;
extern WEAK void own_free(void *p) HIDDEN;

/* Where a program that is not position-independent takes the address of one, that is a jump to ours, which is taken for
 * another's: nothing is lost but what the door is told. So it is told of families only if it is told of all. */
ALWAYS_INLINE bool malloc_is_ours(void)
{
    return LIKELY(malloc == own_malloc);
}

ALWAYS_INLINE bool free_is_ours(void)
{
    return LIKELY(free == own_free);
}

/* malloc, free and these operators: what the loader has found stays as it is. */
static bool all_ours; /* false: or nobody has looked */

ALWAYS_INLINE bool all_are_ours(void)
{
    return LIKELY(load_relaxed(&all_ours));
}

static void look(void)
{
    bool operators_are = hak_linked_others_new(true) == NULL && hak_linked_others_delete(true) == NULL;
    store_relaxed(&all_ours, malloc_is_ours() && free_is_ours() && operators_are);
}

static NOINLINE void *new_at_the_door(size_t size)
{
    return free_is_ours() ? door_new(size) : door_malloc(size);
}

static NOINLINE void *new_array_at_the_door(size_t size)
{
    return free_is_ours() ? door_new_array(size) : door_malloc(size);
}

/* Not in line: its callers here are not FRAGILE. */
FRAGILE NOINLINE void *hak_linked_new(size_t size)
{
    return malloc_is_ours() ? hot_malloc_or(size, new_at_the_door) : malloc(max_size(size, 1));
}

FRAGILE NOINLINE void *hak_linked_new_array(size_t size)
{
    return malloc_is_ours() ? hot_malloc_or(size, new_array_at_the_door) : malloc(max_size(size, 1));
}

static void *or_throw(void *block, size_t size)
{
    return LIKELY(block != NULL) ? block : hak_linked_new_without_memory(size);
}

static void *array_or_throw(void *block, size_t size)
{
    return LIKELY(block != NULL) ? block : hak_linked_new_array_without_memory(size);
}

static ENTRANCE NOINLINE void *new_or_throw_at_the_door(size_t size)
{
    return or_throw(new_at_the_door(size), size);
}

static ENTRANCE NOINLINE void *new_array_or_throw_at_the_door(size_t size)
{
    return array_or_throw(new_array_at_the_door(size), size);
}

static NOINLINE void *new_or_throw(size_t size)
{
    return or_throw(hak_linked_new(size), size);
}

static NOINLINE void *new_array_or_throw(size_t size)
{
    linked_new_function *others = hak_linked_others_new(false);
    look();
    return others != NULL ? others(size) : array_or_throw(hak_linked_new_array(size), size);
}

/* The operators of most programs. They end in a jump to the door, as malloc does. Not in the hardened library: there a large
 * request passes that door by, and the size that it is told counts the seal. */
FRAGILE void *hak_linked_new_or_throw(size_t size)
{
    if (HARDENED || !malloc_is_ours())
        return new_or_throw(size);
    return hot_malloc_or(size, new_or_throw_at_the_door);
}

FRAGILE void *hak_linked_new_array_or_throw(size_t size)
{
    if (HARDENED || !all_are_ours())
        return new_array_or_throw(size);
    return hot_malloc_or(size, new_array_or_throw_at_the_door);
}

static void *new_aligned(size_t alignment, size_t size, enum family family)
{
    if (!is_power_of_two(alignment))
        return NULL;
    if (malloc_is_ours() && keeper_now() != NULL)
        return door_malloc_kept(size, alignment, free_is_ours() ? family : FAMILY_MALLOC);
    if (malloc_is_ours() && free_is_ours()) /* who deletes it with a size says this one */
        return hak_aligned_alloc(alignment, size);
    /* Other allocators may want a multiple of the alignment, and have nothing for 0 bytes. */
    size_t rounded = (max_size(size, 1) + alignment - 1) & ~(alignment - 1);
    return rounded >= size && rounded > 0 ? aligned_alloc(alignment, rounded) : NULL;
}

void *hak_linked_new_aligned(size_t alignment, size_t size)
{
    return new_aligned(alignment, size, FAMILY_NEW_ALIGNED);
}

void *hak_linked_new_array_aligned(size_t alignment, size_t size)
{
    return new_aligned(alignment, size, FAMILY_NEW_ARRAY_ALIGNED);
}

/* Else one of them may have come to ours by another, in a program that is not position-independent, too. */
static bool operators_are_ours(void)
{
    return hak_linked_others_new(true) == NULL && hak_linked_others_delete(true) == NULL && hak_linked_others_new_aligned(true) == NULL
           && hak_linked_others_delete_aligned(true) == NULL;
}

/* Of a block from another's malloc, which may have been asked for more than the operator was, nothing is known. */
static NOINLINE void delete_at_the_door(void *p, enum family family, size_t size)
{
    if (UNLIKELY(keeper_now() != NULL) && family != FAMILY_MALLOC && !operators_are_ours())
        family = FAMILY_UNKNOWN;
    struct freeing known = {.family = family, .size = size};
    door_free_as(p, malloc_is_ours() ? known : (struct freeing){.family = FAMILY_MALLOC, .size = SIZE_UNKNOWN});
}

static const struct hot_way as_new = {FAMILY_NEW, delete_at_the_door};
static const struct hot_way as_new_array = {FAMILY_NEW_ARRAY, delete_at_the_door};
static const struct hot_way as_new_aligned = {FAMILY_NEW_ALIGNED, delete_at_the_door};
static const struct hot_way as_new_array_aligned = {FAMILY_NEW_ARRAY_ALIGNED, delete_at_the_door};
static const struct hot_way as_malloc = {FAMILY_MALLOC, delete_at_the_door};

ALWAYS_INLINE void delete(void *p, const struct hot_way *way, size_t size)
{
    if (!free_is_ours())
        free(p);
    else
        hot_free_by(p, HARDENED && !malloc_is_ours() ? SIZE_UNKNOWN : size, way);
}

static FRAGILE NOINLINE void delete_otherwise(void *p, const struct hot_way *way, size_t size, bool array)
{
    linked_delete_function *others = hak_linked_others_delete(array);
    look();
    if (others != NULL)
        others(p);
    else
        delete(p, way, size);
}

static FRAGILE NOINLINE void delete_aligned(void *p, size_t alignment, size_t size)
{
    delete(p, alignment <= LINKED_PLAIN_ALIGNMENT ? &as_new : &as_new_aligned, size);
}

static FRAGILE NOINLINE void delete_array_aligned(void *p, size_t alignment, size_t size, bool array)
{
    linked_delete_aligned_function *others = hak_linked_others_delete_aligned(array);
    if (others != NULL)
        others(p, alignment);
    else
        delete(p, alignment <= LINKED_PLAIN_ALIGNMENT ? &as_new_array : &as_new_array_aligned, size);
}

FRAGILE void hak_linked_delete(void *p)
{
    delete(p, &as_new, SIZE_UNKNOWN);
}

FRAGILE void hak_linked_delete_array(void *p)
{
    if (all_are_ours())
        hot_free_by(p, SIZE_UNKNOWN, &as_new_array);
    else
        delete_otherwise(p, &as_new_array, SIZE_UNKNOWN, false);
}

FRAGILE void hak_linked_delete_sized(void *p, size_t size)
{
    if (all_are_ours())
        hot_free_by(p, size, &as_new);
    else
        delete_otherwise(p, &as_new, size, false);
}

FRAGILE void hak_linked_delete_array_sized(void *p, size_t size)
{
    if (all_are_ours())
        hot_free_by(p, size, &as_new_array);
    else
        delete_otherwise(p, &as_new_array, size, true);
}

void hak_linked_delete_aligned(void *p, size_t alignment)
{
    delete_aligned(p, alignment, SIZE_UNKNOWN);
}

void hak_linked_delete_aligned_sized(void *p, size_t alignment, size_t size)
{
    linked_delete_aligned_function *others = hak_linked_others_delete_aligned(false);
    if (others != NULL)
        others(p, alignment);
    else
        delete_aligned(p, alignment, size);
}

void hak_linked_delete_array_aligned(void *p, size_t alignment)
{
    delete_array_aligned(p, alignment, SIZE_UNKNOWN, false);
}

void hak_linked_delete_array_aligned_sized(void *p, size_t alignment, size_t size)
{
    delete_array_aligned(p, alignment, size, true);
}

FRAGILE void linked_free_sized(void *p, size_t size)
{
    delete(p, &as_malloc, size);
}
