/*
 * Any function of the family may be a process's first call of it, and any thread's. Each is tried in a process
 * of its own: this program runs itself with the number of the function as argument.
 */
#include "check.h"
#include "family.h"
#include "process.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void use(void *block, size_t size, size_t alignment)
{
    CHECK(block != NULL);
    CHECK((uintptr_t)block % alignment == 0);
    CHECK(family.usable_size(block) >= size);
    memset(block, 1, size);
    family.free(block);
}

static void first_malloc(void)
{
    use(family.malloc(100), 100, 16);
}

static void first_large_malloc(void)
{
    use(family.malloc(1u << 20), 1u << 20, 16);
}

static void first_calloc(void)
{
    unsigned char *block = family.calloc(10, 10);
    CHECK(block != NULL && block[0] == 0 && block[99] == 0);
    use(block, 100, 16);
}

static void first_realloc(void)
{
    use(family.realloc(NULL, 100), 100, 16);
}

static void first_reallocarray(void)
{
    use(family.reallocarray(NULL, 10, 10), 100, 16);
}

static void first_aligned_alloc(void)
{
    use(family.aligned_alloc(64, 100), 100, 64);
}

static void first_large_aligned_alloc(void)
{
    use(family.aligned_alloc(1u << 20, 100), 100, 1u << 20);
}

static void first_posix_memalign(void)
{
    void *block = NULL;
    CHECK(family.posix_memalign(&block, 64, 100) == 0);
    use(block, 100, 64);
}

static void first_memalign(void)
{
    use(family.memalign(64, 100), 100, 64);
}

static void first_valloc(void)
{
    use(family.valloc(100), 100, (size_t)sysconf(_SC_PAGESIZE));
}

static void first_pvalloc(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    use(family.pvalloc(100), page, page);
}

static void first_free(void)
{
    family.free(NULL);
}

static void first_free_sized(void)
{
    if (family.free_sized != NULL) {
        family.free_sized(NULL, 100);
        family.free_aligned_sized(NULL, 64, 100);
    }
}

static void first_usable_size(void)
{
    CHECK(family.usable_size(NULL) == 0);
}

static void first_malloc_trim(void)
{
    const int result = family.malloc_trim(0);
    CHECK(result == 0 || result == 1);
}

static void first_prewarm(void)
{
    if (family.prewarm != NULL) {
        CHECK(family.prewarm(100, 10) <= 10);
    }
}

static void first_malloc_that_fails(void)
{
    CHECK(family.malloc(SIZE_MAX) == NULL);
}

static void first_realloc_that_fails(void)
{
    CHECK(family.reallocarray(NULL, SIZE_MAX, SIZE_MAX) == NULL);
}

static void first_statistics(void)
{
    if (family.mallinfo2 != NULL) {
        CHECK(family.mallinfo2().uordblks < 1u << 30);
        CHECK(family.mallopt(M_ARENA_MAX, 1) == 1);
    }
}

static void (*const calls[])(void) = {
    first_malloc,       first_large_malloc,        first_calloc,         first_realloc,
    first_reallocarray, first_aligned_alloc,       first_large_aligned_alloc, first_posix_memalign,
    first_memalign,     first_valloc,              first_pvalloc,        first_free,
    first_free_sized,   first_usable_size,         first_malloc_trim,    first_prewarm,
    first_malloc_that_fails, first_realloc_that_fails, first_statistics,
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void *call_on_thread(void *argument)
{
    (*(void (*const *)(void))argument)();
    return NULL;
}

/* The call, then an ordinary one; the same as a thread's first. */
static int in_child(size_t number)
{
    calls[number]();
    use(family.malloc(1000), 1000, 16);

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call_on_thread, (void *)(uintptr_t)&calls[number]) == 0);
    pthread_join(thread, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return in_child(strtoul(argv[1], NULL, 10));
    }
    family_require_hakmem();
    size_t failures = 0;
    for (size_t number = 0; number < CALLS; number++) {
        char text[32];
        snprintf(text, sizeof text, "%zu", number);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            process_become(argv[0], text);
            _exit(127);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        if (status != 0) {
            fprintf(stderr, "first call %zu ended with status 0x%x\n", number, (unsigned)status);
            failures++;
        }
    }
    CHECK(failures == 0);
    printf("first call: ok\n");
    return 0;
}
