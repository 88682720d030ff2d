/* hak_mode_set: the mode of a process that runs. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "config/policy.h"
#include "fake_os.h"
#include "hakmem.h"
#include "heap/heartbeat.h"
#include "heaps.h"
#include "large/bigcache.h"

enum { SIZE = 64, BLOCKS = 3000 };

static void use(void)
{
    static void *blocks[BLOCKS];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = hak_malloc(SIZE);
        for (int i = 0; i < BLOCKS; i++)
            hak_free(blocks[i]);
    }
}

static void names_are_modes(void)
{
    char names[] = POLICY_MODES;
    for (const char *name = strtok(names, ", "); name != NULL; name = strtok(NULL, ", ")) {
        CHECK(hak_mode_set(name) == 0);
        CHECK(strcmp(policy_mode_name(), name) == 0);
    }
    CHECK(hak_mode_set("") == EINVAL && hak_mode_set("Fast") == EINVAL && hak_mode_set(NULL) == EINVAL);
    CHECK(strcmp(policy_mode_name(), "research") == 0);
}

static void magazines_follow(void)
{
    struct heap *heap = heap_own();
    unsigned class = size_class_of(SIZE);
    use();
    CHECK(heap->shelf[class].capacity * SIZE > 4 << 10);
    CHECK(hak_mode_set("minimal") == 0);
    use();
    CHECK(heap->shelf[class].capacity * SIZE <= 4 << 10);
    CHECK(hak_mode_set("balanced") == 0);
    use();
    CHECK(heap->shelf[class].capacity * SIZE > 4 << 10);
}

static void kept_blocks_follow(void)
{
    struct heap *heap = heap_own();
    fake_clock_set(100000);
    hak_free(hak_malloc(8 << 20));
    CHECK(bigcache_bytes() == 8 << 20);
    CHECK(hak_mode_set("minimal") == 0);
    fake_clock_set(100010);
    heartbeat(heap);
    CHECK(bigcache_bytes() == 0);
    hak_free(hak_malloc(8 << 20));
    CHECK(bigcache_bytes() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(names_are_modes),
        UNIT_TEST(magazines_follow),
        UNIT_TEST(kept_blocks_follow),
    };
    return cmocka_run_group_tests_name("mode", tests, NULL, NULL);
}
