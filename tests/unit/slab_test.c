/* slab/slab.h: slabs never touch their blocks, so the units here are only addresses. */
#include "unit.h"

#include <string.h>

#include "fake_os.h"
#include "random.h"
#include "slab/slab.h"

enum { BLOCKS_MOST = 65536 / 8, STEPS = 20000, RUN_MOST = 3 };

static char *const base = (char *)(uintptr_t)0x123450000;
static void *slots[BLOCKS_MOST + 1];

static struct slab *make(unsigned class)
{
    size_class_init();
    struct slab *slab = slab_make(class, base);
    CHECK(slab != NULL);
    return slab;
}

static void all_blocks_come_ascending(void)
{
    size_class_init();
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        struct slab *slab = make(class);
        unsigned blocks = size_classes[class].blocks;
        CHECK(slab->free == blocks);
        CHECK(slab_take(slab, slots + blocks, blocks + 100) == blocks);
        CHECK(slab->free == 0);
        void **top = slots + blocks;
        for (unsigned i = 0; i < blocks; i++)
            CHECK(*top-- == base + (size_t)i * size_classes[class].size);
        CHECK(top == slots);
        CHECK(slab_take(slab, slots + 1, 1) == 0);
        slab_discard(slab);
    }
}

static void takes_go_on_where_the_last_ended(void)
{
    struct slab *slab = make(3);
    size_t size = size_classes[3].size;
    size_t expected = 0;
    for (unsigned want = 0; slab->free > 0; want = (want + 7) % 200) {
        unsigned before = slab->free;
        unsigned got = slab_take(slab, slots + BLOCKS_MOST, want);
        CHECK(got == (want < before ? want : before));
        for (unsigned i = 0; i < got; i++)
            CHECK(slots[BLOCKS_MOST - i] == base + expected++ * size);
    }
    CHECK(expected == slab->blocks);
}

static void only_blocks_are_blocks(void)
{
    size_class_init();
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        struct slab *slab = make(class);
        size_t size = size_classes[class].size;
        slab_take(slab, slots + slab->blocks, slab->blocks);
        for (size_t offset = 0; offset < size_classes[class].units * UNIT_SIZE; offset++) {
            bool is_block = offset % size == 0 && offset / size < slab->blocks;
            CHECK(slab_holds(slab, base + offset) == is_block);
            if (!is_block)
                CHECK(slab_put(slab, base + offset) == SLAB_NOT_A_BLOCK);
        }
        CHECK(slab->free == 0);
        slab_discard(slab);
    }
}

static void double_puts_are_seen(void)
{
    struct slab *slab = make(5);
    CHECK(slab_put(slab, base) == SLAB_DOUBLE_FREE);
    CHECK(slab_take(slab, slots + 2, 2) == 2);
    CHECK(slab_put(slab, slots[2]) == SLAB_FINE);
    CHECK(slab_put(slab, slots[2]) == SLAB_DOUBLE_FREE);
    CHECK(slab_put(slab, slots[1]) == SLAB_FINE);
    CHECK(slab_put(slab, slots[1]) == SLAB_DOUBLE_FREE);
    CHECK(slab->free == slab->blocks);
}

static void put_run(struct slab *slab, void *const *blocks, unsigned count, unsigned wanted, enum slab_verdict verdict)
{
    enum slab_verdict said;
    unsigned before = slab->free;
    CHECK(slab_put_run(slab, blocks, count, &said) == wanted && said == verdict);
    CHECK(slab->free == before + wanted);
    for (unsigned i = 0; i < wanted; i++)
        CHECK(slab_is_free(slab, blocks[i]));
}

static void runs_end_with_the_slab_or_with_a_fault(void)
{
    struct slab *slab = make(5);
    size_t size = slab->stride;
    char *end = base + slab->units * UNIT_SIZE;
    CHECK(slab_take(slab, slots + slab->blocks, slab->blocks) == slab->blocks);
    put_run(slab, (void *[]){base, base + 3 * size}, 1, 1, SLAB_FINE);
    put_run(slab, (void *[]){base + size, base + 3 * size, end, base + 4 * size}, 4, 2, SLAB_FINE);
    put_run(slab, (void *[]){base + 4 * size, base - size, base + 5 * size}, 3, 1, SLAB_FINE);
    put_run(slab, (void *[]){base + 5 * size, base + 6 * size, base + 5 * size, base + 7 * size}, 4, 2, SLAB_DOUBLE_FREE);
    put_run(slab, (void *[]){base + 7 * size, base + 8 * size + 8, base + 9 * size}, 3, 1, SLAB_NOT_A_BLOCK);
    put_run(slab, (void *[]){base + 7 * size}, 1, 0, SLAB_DOUBLE_FREE);
    void *next;
    CHECK(slab_take(slab, &next, 1) == 1 && next == base);
}

static void unput_undoes(void)
{
    struct slab *slab = make(5);
    CHECK(slab_take(slab, slots + 100, 100) == 100);
    for (int i = 1; i <= 100; i++) {
        CHECK(slab_put(slab, slots[i]) == SLAB_FINE);
        slab_unput(slab, slots[i]);
    }
    CHECK(slab->free == slab->blocks - 100);
    void *next;
    CHECK(slab_take(slab, &next, 1) == 1);
    CHECK(next == base + 100 * size_classes[5].size);
    CHECK(slab_put(slab, slots[7]) == SLAB_FINE);
    CHECK(slab_take(slab, &next, 1) == 1);
    CHECK(next == slots[7]);
}

static void follows_a_model(unsigned class, uint64_t *seed)
{
    static bool is_free[BLOCKS_MOST];
    struct slab *slab = make(class);
    unsigned free_blocks = slab->blocks;
    memset(is_free, true, sizeof is_free);
    for (int step = 0; step < STEPS; step++) {
        CHECK(slab->free == free_blocks);
        if (random_below(seed, 8) == 0) {
            unsigned got = slab_take(slab, slots + BLOCKS_MOST, (unsigned)random_below(seed, 16));
            for (unsigned i = 0; i < got; i++) {
                size_t index = (size_t)((char *)slots[BLOCKS_MOST - i] - base) / slab->stride;
                CHECK(is_free[index]);
                is_free[index] = false;
            }
            free_blocks -= got;
        } else {
            void *run[RUN_MOST];
            unsigned count = 1 + (unsigned)random_below(seed, RUN_MOST);
            unsigned fine = 0;
            bool goes_on = true;
            for (unsigned i = 0; i < count; i++) {
                size_t index = random_below(seed, slab->blocks);
                run[i] = base + index * slab->stride;
                goes_on = goes_on && !is_free[index];
                fine += goes_on;
                is_free[index] = is_free[index] || goes_on;
            }
            put_run(slab, run, count, fine, goes_on ? SLAB_FINE : SLAB_DOUBLE_FREE);
            free_blocks += fine;
        }
    }
    slab_discard(slab);
}

static void every_class_follows_a_model(void)
{
    uint64_t seed = 7;
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++)
        follows_a_model(class, &seed);
}

static void buckets_go_by_fullness(void)
{
    size_class_init();
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        struct slab *slab = make(class);
        CHECK(slab->bucket == SLAB_BUCKETS);
        unsigned last = SLAB_BUCKETS - 1;
        CHECK(slab_bucket_for(slab) == last);
        while (slab_take(slab, slots + 1, 1) == 1) {
            unsigned bucket = slab_bucket_for(slab);
            CHECK(bucket <= last);
            CHECK(slab->free < slab_bucket_end(slab, bucket));
            CHECK(bucket == last || slab->free + 1 >= slab_bucket_end(slab, bucket));
            last = bucket;
        }
        CHECK(last == 0);
        slab_discard(slab);
    }
}

static void no_metadata_memory_is_null(void)
{
    size_class_init();
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    CHECK(slab_make(0, base) == NULL);
    fake_os_obey();
    CHECK(slab_make(0, base) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(all_blocks_come_ascending), UNIT_TEST(takes_go_on_where_the_last_ended),
        UNIT_TEST(only_blocks_are_blocks),    UNIT_TEST(double_puts_are_seen),
        UNIT_TEST(unput_undoes),              UNIT_TEST(runs_end_with_the_slab_or_with_a_fault),
        UNIT_TEST(buckets_go_by_fullness),    UNIT_TEST(every_class_follows_a_model),
        UNIT_TEST(no_metadata_memory_is_null),
    };
    return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
