/* The hak_ names as the family under test. */
#include "family.h"
#include "hakmem.h"

/* The table has glibc's type, which lacks the const. */
static size_t usable_size(void *ptr)
{
    return hak_malloc_usable_size(ptr);
}

const struct family family = {
    .name = "hak_ names",
    .malloc = hak_malloc,
    .free = hak_free,
    .calloc = hak_calloc,
    .realloc = hak_realloc,
    .reallocarray = hak_reallocarray,
    .aligned_alloc = hak_aligned_alloc,
    .posix_memalign = hak_posix_memalign,
    .memalign = hak_memalign,
    .valloc = hak_valloc,
    .pvalloc = hak_pvalloc,
    .usable_size = usable_size,
    .malloc_trim = hak_malloc_trim,
    .free_sized = hak_free_sized,
    .free_aligned_sized = hak_free_aligned_sized,
    .prewarm = hak_prewarm,
    .version = hak_version,
    .mode_set = hak_mode_set,
};

void family_require_hakmem(void)
{
}
