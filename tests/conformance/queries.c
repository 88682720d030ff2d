/* The functions that ask or advise: sizes, statistics, trimming, options. */
#include "cases.h"
#include "family.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void usable_size_of_null_is_zero(void **state)
{
    (void)state;
    assert_int_equal(family.usable_size(NULL), 0);
}

void trim_reports_and_harms_nothing(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    static unsigned char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = family.malloc(1000);
        assert_non_null(blocks[i]);
        memset(blocks[i], (int)(i % 200), 1000);
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        family.free(blocks[i]);
    }
    const int first = family.malloc_trim(0);
    const int second = family.malloc_trim(1u << 20);
    assert_true(first == 0 || first == 1);
    assert_true(second == 0 || second == 1);
    for (size_t i = 1; i < COUNT; i += 2) {
        assert_int_equal(blocks[i][0], i % 200);
        assert_int_equal(blocks[i][999], i % 200);
        family.free(blocks[i]);
    }
    const int last = family.malloc_trim(SIZE_MAX);
    assert_true(last == 0 || last == 1);
}

void mallopt_accepts_the_known_options(void **state)
{
    (void)state;
    if (family.mallopt == NULL) {
        skip();
    }
    assert_int_equal(family.mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
    assert_int_equal(family.mallopt(M_MMAP_MAX, 65536), 1);
    assert_int_equal(family.mallopt(M_TRIM_THRESHOLD, 1 << 20), 1);
    assert_int_equal(family.mallopt(M_TOP_PAD, 0), 1);
    assert_int_equal(family.mallopt(M_ARENA_TEST, 2), 1);
    assert_int_equal(family.mallopt(M_ARENA_MAX, 4), 1);
    assert_int_equal(family.mallopt(M_MXFAST, 64), 1);
    assert_int_equal(family.mallopt(M_PERTURB, 0), 1);
    void *block = family.malloc(2u << 20);
    assert_non_null(block);
    family.free(block);
}

/* As mallinfo2 has them: blocks with a mapping of their own are counted apart. */
static size_t bytes_in_use(void)
{
    const struct mallinfo2 info = family.mallinfo2();
    return info.uordblks + info.hblkhd;
}

static size_t bytes_from_system(void)
{
    const struct mallinfo2 info = family.mallinfo2();
    return info.arena + info.hblkhd;
}

void mallinfo_grows_with_allocation(void **state)
{
    (void)state;
    if (family.mallinfo2 == NULL) {
        skip();
    }
    enum { COUNT = 40000, SMALL = 500, LARGE = 5u << 20 };
    static void *blocks[COUNT];
    const size_t before = bytes_in_use();
    const struct mallinfo old_before = family.mallinfo();
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = family.malloc(SMALL);
        assert_non_null(blocks[i]);
    }
    const size_t with_small = bytes_in_use();
    assert_in_range(with_small, before + COUNT * SMALL * 9 / 10, before + COUNT * SMALL * 2);

    const size_t from_system = bytes_from_system();
    void *large = family.malloc(LARGE);
    assert_non_null(large);
    const size_t with_large = bytes_in_use();
    assert_in_range(bytes_from_system(), from_system, from_system + LARGE + LARGE / 2);
    const struct mallinfo old_with_large = family.mallinfo();
    assert_in_range(with_large, with_small + LARGE, with_small + LARGE + LARGE / 10);
    assert_true(old_with_large.uordblks + old_with_large.hblkhd >
                old_before.uordblks + old_before.hblkhd + COUNT * SMALL * 9 / 10);

    family.free(large);
    for (size_t i = 0; i < COUNT; i++) {
        family.free(blocks[i]);
    }
    assert_true(bytes_in_use() < before + COUNT * SMALL / 2);
}

void malloc_info_writes_xml(void **state)
{
    (void)state;
    if (family.malloc_info == NULL) {
        skip();
    }
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_int_equal(family.malloc_info(0, out), 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(strncmp(text, "<malloc", strlen("<malloc")), 0);
    assert_non_null(strstr(text, "</malloc>"));
    free(text);

    assert_int_not_equal(family.malloc_info(1, stderr), 0); /* no option is defined */
}

void malloc_stats_writes_to_stderr(void **state)
{
    (void)state;
    if (family.malloc_stats == NULL) {
        skip();
    }
    FILE *capture = tmpfile();
    assert_non_null(capture);
    const int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    fflush(stderr);
    dup2(fileno(capture), STDERR_FILENO);
    family.malloc_stats();
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_true(lseek(fileno(capture), 0, SEEK_END) > 10);
    fclose(capture);
}

void prewarm_prepares_small_sizes(void **state)
{
    (void)state;
    if (family.prewarm == NULL) {
        skip();
    }
    if (getenv("HAKMEM_CHECK") != NULL) { /* whose blocks come from elsewhere */
        assert_int_equal(family.prewarm(64, 4), 0);
        return;
    }
    static const size_t sizes[] = {0, 1, 64, 1000, 32760};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t prepared = family.prewarm(sizes[i], 4);
        assert_in_range(prepared, 1, 4);
    }
    assert_int_equal(family.prewarm(64, 0), 0);
    assert_int_equal(family.prewarm(32769, 4), 0);
    assert_int_equal(family.prewarm(SIZE_MAX, 4), 0);
    assert_true(family.prewarm(64, 100000) <= 100000);
    /* More than any machine has: nothing is used up on the way. */
    assert_int_equal(family.prewarm(8, SIZE_MAX), 0);
    assert_int_equal(family.prewarm(32000, SIZE_MAX / 32000), 0);
    assert_int_equal(family.prewarm(64, (size_t)1 << 46), 0);
}

void version_is_three_numbers(void **state)
{
    (void)state;
    if (family.version == NULL) {
        skip();
    }
    unsigned major = 0;
    unsigned minor = 0;
    unsigned patch = 0;
    char rest = 0;
    assert_int_equal(sscanf(family.version(), "%u.%u.%u%c", &major, &minor, &patch, &rest), 3);
}
