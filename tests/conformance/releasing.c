/* free and its relatives: they keep errno, and take every block. */
#include "cases.h"
#include "family.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { ODD_ERRNO = 12345 };

void free_keeps_errno(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 32768, 32769, 100000, 1u << 20, 40u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *block = family.malloc(sizes[i]);
        assert_non_null(block);
        memset(block, 1, sizes[i]);
        errno = ODD_ERRNO;
        family.free(block);
        assert_int_equal(errno, ODD_ERRNO);
    }
    errno = ODD_ERRNO;
    family.free(NULL);
    assert_int_equal(errno, ODD_ERRNO);
    errno = 0;
    family.free(family.malloc(10));
    assert_int_equal(errno, 0);
}

void free_of_a_full_magazine_keeps_errno(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = family.malloc(200);
        assert_non_null(blocks[i]);
    }
    errno = ODD_ERRNO;
    for (size_t i = 0; i < COUNT; i++) {
        family.free(blocks[i]);
        assert_int_equal(errno, ODD_ERRNO);
    }
}

enum { REMOTE_BLOCKS = 5000 };

struct remote_free {
    void *blocks[REMOTE_BLOCKS];
    int errno_after;
};

static void *free_remotely(void *argument)
{
    struct remote_free *work = argument;
    errno = ODD_ERRNO;
    for (size_t i = 0; i < REMOTE_BLOCKS; i++) {
        family.free(work->blocks[i]);
    }
    work->errno_after = errno;
    return NULL;
}

void free_of_another_threads_block_keeps_errno(void **state)
{
    (void)state;
    static struct remote_free work;
    for (size_t i = 0; i < REMOTE_BLOCKS; i++) {
        work.blocks[i] = family.malloc(i % 100 == 0 ? 70000 : 48);
        assert_non_null(work.blocks[i]);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_remotely, &work), 0);
    pthread_join(thread, NULL);
    assert_int_equal(work.errno_after, ODD_ERRNO);
}

/* One block from each allocating function; `kind` < ALLOCATORS. */
enum { ALLOCATORS = 9 };
static void *allocate(size_t kind, size_t size)
{
    void *block = NULL;
    switch (kind) {
    case 0:
        return family.malloc(size);
    case 1:
        return family.calloc(1, size);
    case 2:
        return family.realloc(NULL, size);
    case 3:
        return family.reallocarray(NULL, size, 1);
    case 4:
        return family.aligned_alloc(256, size);
    case 5:
        assert_int_equal(family.posix_memalign(&block, 64, size), 0);
        return block;
    case 6:
        return family.memalign(8192, size);
    case 7:
        return family.valloc(size);
    default:
        return family.pvalloc(size);
    }
}

void every_block_may_go_to_every_free(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 5000, 32768, 50000, 2u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t size = sizes[i];
        for (size_t kind = 0; kind < ALLOCATORS; kind++) {
            family.free(allocate(kind, size));
            if (family.cfree != NULL) {
                family.cfree(allocate(kind, size));
            }
        }
        if (family.free_sized != NULL) {
            family.free_sized(family.malloc(size), size);
            family.free_sized(family.calloc(size, 1), size);
            family.free_aligned_sized(family.aligned_alloc(64, size), 64, size);
            family.free_aligned_sized(family.aligned_alloc(1u << 20, size), 1u << 20, size);
        }
    }
    if (family.free_sized != NULL) {
        errno = ODD_ERRNO;
        family.free_sized(NULL, 10);
        family.free_aligned_sized(NULL, 64, 10);
        family.free_sized(family.malloc(100), 100);
        assert_int_equal(errno, ODD_ERRNO);
    }
}
