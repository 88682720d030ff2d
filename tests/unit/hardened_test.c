/* The hardened library: what it serves are good blocks, of which it knows the very size; and it ends the process where one is
 * misused. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/zero.h"
#include "child.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "fake_os.h"
#include "hakmem.h"
#include "heap/classes.h"
#include "heap/heartbeat.h"
#include "heap/view.h"
#include "os/os.h"
#include "scale.h"

enum { BLOCKS = 1000, THREADS = 8 };

#define LARGE ((size_t)300000)

static const size_t sizes[] = {1, 8, 24, 40, 1000, 5000, 32760, 32761, 40000, LARGE};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* ---- Blocks. */

static void says_what_was_asked_for(void)
{
    for (size_t size = 0; size < 100000; size += 1 + size / 20) {
        char *block = hak_malloc(size);
        CHECK(hak_malloc_usable_size(block) == size && is_zero(block, size));
        memset(block, 1, size);
        hak_free_sized(block, size);
    }
}

static void aligns(void)
{
    for (size_t alignment = 1; alignment <= 1 << 20; alignment *= 2) {
        for (size_t size = 1; size < 100000; size = size * 3 + 1) {
            char *block = hak_aligned_alloc(alignment, size);
            CHECK((uintptr_t)block % alignment == 0 && hak_malloc_usable_size(block) == size);
            memset(block, 1, size);
            hak_free_aligned_sized(block, alignment, size);
        }
    }
}

/* What is held grows by slabs that are touched, and not by the fences behind them. */
static void fences_are_not_held(void)
{
    enum { EACH = 4000, SIZE = 500 };
    struct hak_stats before;
    struct hak_stats after;
    CHECK(hak_stats_get(&before, sizeof before) == 0);
    for (int i = 0; i < EACH; i++)
        memset(hak_malloc(SIZE), 1, SIZE);
    CHECK(hak_stats_get(&after, sizeof after) == 0);
    size_t held = after.held_bytes - before.held_bytes;
    CHECK(held >= EACH * SIZE && held < EACH * SIZE + EACH * SIZE / 4);
}

static void check_content(const char *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        CHECK(block[i] == (char)i);
}

static void resizes(void)
{
    char *block = hak_malloc(1);
    block[0] = 0;
    size_t size = 1;
    for (unsigned round = 0; round < 2000; round++) {
        size_t next = 1 + (size * 37 + round * 11) % (round % 2 == 0 ? 500 : 200000);
        block = hak_realloc(block, next);
        CHECK(hak_malloc_usable_size(block) == next);
        check_content(block, min_size(size, next));
        for (size_t i = size; i < next; i++)
            block[i] = (char)i;
        size = next;
    }
    hak_free(block);
}

static void zeroes_what_is_freed(void)
{
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < SIZES; i++) {
            char *block = hak_malloc(sizes[i]);
            char *cleared = hak_calloc(sizes[i], 1);
            CHECK(is_zero(block, sizes[i]) && is_zero(cleared, sizes[i]));
            memset(block, 's', sizes[i]);
            memset(cleared, 's', sizes[i]);
            hak_free(block);
            hak_free(cleared);
        }
    }
}

/* Neither is the block freed last the next one, nor do addresses follow each other. */
static void is_hard_to_predict(void)
{
    int same = 0;
    int ascending = 0;
    char *before = hak_malloc(100);
    for (int i = 0; i < BLOCKS; i++) {
        void *block = hak_malloc(48);
        hak_free(block);
        void *next = hak_malloc(48);
        same += next == block;
        hak_free(next);
        char *kept = hak_malloc(100);
        ascending += kept == before + 112;
        before = kept;
    }
    CHECK(same < BLOCKS / 4 && ascending < BLOCKS / 4);
}

static void blocks_of_nothing_differ(void)
{
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(0);
        CHECK(blocks[i] != NULL && hak_malloc_usable_size(blocks[i]) == 0);
        CHECK(i == 0 || blocks[i] != blocks[i - 1]);
    }
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(hak_realloc(hak_malloc(0), 10) != NULL);
}

static void *exchange[64];

static void *swap_blocks(void *argument)
{
    unsigned random = (unsigned)(uintptr_t)argument;
    for (size_t i = 0; i < scaled_work(20000); i++) {
        random = random * 1103515245u + 12345u;
        size_t size = (random >> 8) % ((random & 0x8000) != 0 ? 200 : 40000);
        char *block = hak_malloc(size);
        CHECK(is_zero(block, size));
        memset(block, (int)size, size);
        char *other = __atomic_exchange_n(&exchange[(random >> 16) % 64], block, __ATOMIC_ACQ_REL);
        for (size_t bytes = other != NULL ? hak_malloc_usable_size(other) : 0, j = 0; j < bytes; j += 97)
            CHECK(other[j] == (char)bytes);
        hak_free(other);
    }
    return NULL;
}

static void serves_threads(void)
{
    pthread_t thread[THREADS];
    for (int round = 0; round < 2; round++) {
        for (uintptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&thread[i], NULL, swap_blocks, (void *)i) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(thread[i], NULL) == 0);
    }
}

static void lives_without_memory(void)
{
    static char *held[BLOCKS];
    hak_free(hak_malloc(1));
    for (uint64_t seed = 1; seed < 2 + scaled_work(20); seed++) {
        int count = 0;
        fake_os_refuse_some(FAKE_ALL & ~(FAKE_BARRIER | FAKE_SET_BIT | FAKE_HOLDS), 2, seed);
        for (size_t i = 0; i < BLOCKS; i++) {
            char *block = hak_malloc(i * 67 % 60000);
            if (block == NULL)
                continue;
            memset(block, 1, i * 67 % 60000);
            held[count++] = block;
        }
        while (count > 0)
            hak_free(held[--count]);
        fake_os_obey();
    }
}

/* ---- Misuse. */

static bool check_comes_late;

/* The compiler, which knows what is misuse, is not told what this is. */
static char *get(size_t size)
{
    void *volatile block = hak_malloc(size);
    CHECK(!check_comes_late || hak_check_start() == 0);
    return block;
}

static void free_twice(uintptr_t size)
{
    void *block = get(size);
    hak_free(block);
    hak_free(block);
}

static void free_twice_later(uintptr_t size)
{
    void *block = get(size);
    hak_free(block);
    for (int i = 0; i < 3; i++)
        hak_free(get(size));
    hak_free(block);
}

static void resize_freed(uintptr_t size)
{
    void *block = get(size);
    hak_free(block);
    CHECK(hak_realloc(block, size * 3) == NULL);
}

static void free_inside(uintptr_t size)
{
    char *block = get(size);
    memset(block, 7, size);
    hak_free(block + align_down(size / 2, 8));
}

static void write_behind(uintptr_t size)
{
    char *block = get(size);
    ((volatile char *)block)[size] ^= 1;
    hak_free(block);
}

static void write_before(uintptr_t size)
{
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = get(size);
    for (int i = 0; i < BLOCKS; i++)
        if ((uintptr_t)blocks[i] % UNIT_SIZE != 0) /* there it would fault */
            ((volatile char *)blocks[i])[-1] ^= 0x55;
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
}

/* What is written is the seal of a block that was never used. */
static void clear_too_much(uintptr_t size)
{
    char *block = get(size);
    memset(block, 0, size + sizeof(uint64_t));
    hak_free(block);
}

static void grow_overrun(uintptr_t size)
{
    char *block = get(size);
    ((volatile char *)block)[size] = 1;
    hak_free(hak_realloc(block, size + 100));
}

static void write_after_free(uintptr_t size)
{
    char *block = get(size);
    hak_free(block);
    ((volatile char *)block)[size / 2] = 1;
    for (int i = 0; i < 20000; i++)
        hak_free(get(size));
}

static void free_by_less(uintptr_t size)
{
    hak_free_sized(get(size), size - 1);
}

static void free_by_more(uintptr_t size)
{
    hak_free_sized(get(size), size + 1);
}

static void small_blocks_are_verified(void)
{
    CHECK(child_dies_of(SIGABRT, free_twice, 0, "double free"));
    CHECK(child_dies_of(SIGABRT, free_twice_later, 0, "double free"));
    for (int i = 0; i < SIZES && sizes[i] <= 32760; i++) {
        CHECK(child_dies_of(SIGABRT, free_twice, sizes[i], "double free"));
        CHECK(child_dies_of(SIGABRT, free_twice_later, sizes[i], "double free"));
        CHECK(child_dies_of(SIGABRT, resize_freed, sizes[i], "use after free"));
        CHECK(child_dies_of(SIGABRT, write_behind, sizes[i], "overflow"));
        CHECK(child_dies_of(SIGABRT, write_after_free, sizes[i], "write after free"));
        CHECK(child_dies_of(SIGABRT, free_by_less, sizes[i], "size mismatch in free"));
        CHECK(child_dies_of(SIGABRT, free_by_more, sizes[i], "size mismatch in free"));
        if (sizes[i] < UNIT_SIZE)
            CHECK(child_dies_of(SIGABRT, write_before, sizes[i], "overflow"));
        if (sizes[i] >= 24)
            CHECK(child_dies_of(SIGABRT, free_inside, sizes[i], "invalid free"));
    }
    CHECK(child_dies_of(SIGABRT, clear_too_much, 24, "overflow"));
}

static void write_far_behind(uintptr_t size)
{
    volatile char *block = get(size);
    for (size_t i = 0; i < size + os_page_size(); i++)
        block[i] = 1;
}

static void read_freed(uintptr_t size)
{
    volatile char *block = get(size);
    hak_free((char *)block);
    (void)block[size / 2];
}

static void large_blocks_are_verified(void)
{
    CHECK(child_dies_of(SIGABRT, free_twice, LARGE, "double free"));
    CHECK(child_dies_of(SIGABRT, free_inside, LARGE, "invalid free"));
    CHECK(child_dies_of(SIGABRT, write_behind, LARGE, "overflow"));
    CHECK(child_dies_of(SIGABRT, grow_overrun, LARGE, "overflow"));
    CHECK(child_dies_of(SIGABRT, free_by_less, LARGE, "size mismatch in free"));
    CHECK(child_dies_of(SIGABRT, free_by_more, LARGE, "too large a size in free"));
    CHECK(child_dies_of(SIGSEGV, write_far_behind, LARGE, ""));
    CHECK(child_dies_of(SIGSEGV, read_freed, LARGE, ""));
}

static void touch_nothing(uintptr_t write)
{
    volatile char *block = get(0);
    if (write)
        block[0] = 1;
    else
        (void)block[0];
}

static void write_past_slab(uintptr_t size)
{
    volatile char *block = get(size);
    for (size_t i = 0; i < 2 * SLAB_UNITS_MAX * UNIT_SIZE; i++)
        block[i] = 1;
}

static void nothing_may_touch_fences(void)
{
    CHECK(child_dies_of(SIGSEGV, touch_nothing, 0, ""));
    CHECK(child_dies_of(SIGSEGV, touch_nothing, 1, ""));
    CHECK(child_dies_of(SIGSEGV, write_past_slab, 40, ""));
    CHECK(child_dies_of(SIGSEGV, write_past_slab, 5000, ""));
}

/* ---- Blocks that are older than check mode. */

static void free_twice_across_the_start(uintptr_t size)
{
    void *block = get(size);
    hak_free(block);
    CHECK(hak_check_start() == 0);
    hak_free(block);
}

static void free_good(uintptr_t size)
{
    void *block = get(size);
    CHECK(hak_malloc_usable_size(block) == size);
    block = hak_realloc(block, size + 10);
    hak_free_sized(block, size + 10);
    hak_malloc_trim(0);
    _exit(0);
}

static void check_mode_may_come_late(void)
{
    for (int i = 0; i < SIZES && sizes[i] <= 32760; i++)
        CHECK(child_dies_of(SIGABRT, free_twice_across_the_start, sizes[i], "double-free"));
    CHECK(child_dies_of(SIGABRT, free_twice_across_the_start, 0, "double-free"));
    check_comes_late = true;
    for (int i = -1; i < SIZES; i++) {
        size_t size = i < 0 ? 0 : sizes[i];
        struct child child = child_run(free_good, size);
        CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0);
        if (size == 0 || size > 32760)
            continue;
        CHECK(child_dies_of(SIGABRT, free_twice, size, "double-free"));
        CHECK(child_dies_of(SIGABRT, write_behind, size, "overflow"));
        CHECK(child_dies_of(SIGABRT, free_by_less, size, "size-mismatch"));
    }
    check_comes_late = false;
}

/* Seals stand at the end of blocks of any class, and each of its sizes holds one. */
static void serves_classes_made_at_run_time(void)
{
    static const size_t made[] = {144, 272, 1008, 1040, 1104, 5008, 16400, 32752};
    unsigned ids[sizeof made / sizeof made[0]];
    hak_free(hak_malloc(1));
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        ids[i] = classes_open(made[i]);
        CHECK(size_class_of(made[i]) == ids[i]);
    }
    says_what_was_asked_for();
    aligns();
    resizes();
    is_hard_to_predict();
    small_blocks_are_verified();
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        char *block = hak_malloc(made[i] - 8);
        CHECK(hak_malloc_usable_size(block) == made[i] - 8);
        classes_close(ids[i]);
        memset(block, 1, made[i] - 8);
        hak_free(block);
    }
    heartbeat(view_load()->heap);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        classes_reclaim_one();
    CHECK(classes_defined == 0);
    says_what_was_asked_for();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(says_what_was_asked_for),
        UNIT_TEST(aligns),
        UNIT_TEST(fences_are_not_held),
        UNIT_TEST(resizes),
        UNIT_TEST(zeroes_what_is_freed),
        UNIT_TEST(is_hard_to_predict),
        UNIT_TEST(blocks_of_nothing_differ),
        UNIT_TEST(serves_threads),
        UNIT_TEST(lives_without_memory),
        UNIT_TEST(small_blocks_are_verified),
        UNIT_TEST(large_blocks_are_verified),
        UNIT_TEST(serves_classes_made_at_run_time),
        UNIT_TEST(nothing_may_touch_fences),
        UNIT_TEST(check_mode_may_come_late),
    };
    return cmocka_run_group_tests_name("hardened", tests, NULL, NULL);
}
