/*
 * The libc names as the family under test. Names that glibc does not offer to new programs are weak: they
 * are hakmem's, or NULL. (A weak name is looked up at run time only in position-independent code.)
 */
#include "family.h"

#include <stdlib.h>

extern void cfree(void *ptr) __attribute__((weak));
extern void free_sized(void *ptr, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *ptr, size_t alignment, size_t size) __attribute__((weak));
extern size_t hak_prewarm(size_t size, size_t count) __attribute__((weak));
extern const char *hak_version(void) __attribute__((weak));
extern int hak_mode_set(const char *name) __attribute__((weak));

/* mallinfo under another name, because glibc's header marks it as deprecated. */
extern struct mallinfo mallinfo_of_libc(void) __asm__("mallinfo") __attribute__((weak));

const struct family family = {
    .name = "libc names",
    .malloc = malloc,
    .free = free,
    .calloc = calloc,
    .realloc = realloc,
    .reallocarray = reallocarray,
    .aligned_alloc = aligned_alloc,
    .posix_memalign = posix_memalign,
    .memalign = memalign,
    .valloc = valloc,
    .pvalloc = pvalloc,
    .usable_size = malloc_usable_size,
    .malloc_trim = malloc_trim,
    .free_sized = free_sized,
    .free_aligned_sized = free_aligned_sized,
    .cfree = cfree,
    .mallopt = mallopt,
    .mallinfo = mallinfo_of_libc,
    .mallinfo2 = mallinfo2,
    .malloc_info = malloc_info,
    .malloc_stats = malloc_stats,
    .prewarm = hak_prewarm,
    .version = hak_version,
    .mode_set = hak_mode_set,
};

void family_require_hakmem(void)
{
    if (getenv("HAK_TEST_ANY_ALLOCATOR") != NULL) {
        return;
    }
    /* 112 is the class of 100 bytes, check mode gives what was asked for; glibc gives 104. */
    void *block = family.malloc(100);
    const size_t usable = family.usable_size(block);
    family.free(block);
    if (family.version == NULL || (usable != 112 && usable != 100)) {
        fprintf(stderr, "hakmem does not serve this process: usable size of 100 bytes is %zu\n", usable);
        exit(99);
    }
    /* Looking at them here makes the linker leave them to the dynamic one: in a table alone they would be NULL. */
    if (family.cfree == NULL || family.free_sized == NULL || family.free_aligned_sized == NULL ||
        family.pvalloc == NULL || family.malloc_trim == NULL || family.prewarm == NULL ||
        family.mode_set == NULL) {
        fputs("hakmem does not serve all of the family\n", stderr);
        exit(99);
    }
}
