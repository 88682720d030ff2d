/* Requests that say where in the program they are made. */
#include "hakmem.h"

#include "api/hot.h"

FRAGILE void *hak_alloc_at(size_t size, uintptr_t site)
{
    return size <= SMALL_MAX ? hot_malloc(size) : door_malloc_at(size, site);
}

FRAGILE void hak_free_at(void *ptr, size_t size, uintptr_t site)
{
    if (size <= SMALL_MAX)
        hot_free_sized(ptr, size);
    else
        door_free_as(ptr, (struct freeing){.family = FAMILY_MALLOC, .size = size, .site = site});
}
