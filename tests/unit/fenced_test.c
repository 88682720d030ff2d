/* large/fenced.h: large blocks of the hardened library rest after they were freed, and are lent again as if they were new. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/zero.h"
#include "child.h"
#include "config/knobs.h"
#include "config/size_class.h"
#include "fake_os.h"
#include "hakmem.h"
#include "os/os.h"
#include "process.h"
#include "scale.h"
#include "span/span.h"

/* Closed while it rests; and not. */
#define CLOSED ((size_t)300000)
#define OPEN ((size_t)60000)

/* From this on a freed block is closed. */
#define CLOSED_LEAST ((size_t)128 << 10)

enum { REST_LEAST = 8, REST_MOST = 24, HELD = 64 };

/* The compiler, which knows what is misuse, is not told what this is. */
static char *get(size_t size)
{
    char *volatile block = hak_malloc(size);
    CHECK(block != NULL && is_zero(block, size));
    return block;
}

/* Enough of them for what was freed before to have rested. */
static void others_come_and_go(size_t size)
{
    for (int i = 0; i < 2 * REST_MOST; i++)
        hak_free(get(size));
}

/* Frees a block and has others of `size` come and go until it is lent again. Returns how many did. */
static int rest(char *block, size_t size)
{
    hak_free(block);
    for (int others = 0; others < 10 * REST_MOST; others++) {
        char *other = get(size);
        if (other == block)
            return others;
        memset(other, 1, size);
        hak_free(other);
    }
    return -1;
}

static void freed_blocks_rest(void)
{
    const size_t blocks[] = {OPEN, CLOSED};
    for (unsigned i = 0; i < 2; i++) {
        char *block = get(blocks[i]);
        memset(block, 1, blocks[i]);
        int others = rest(block, blocks[i]);
        CHECK(others >= REST_LEAST && others <= 2 * REST_MOST);
        CHECK(hak_malloc_usable_size(block) == blocks[i]);
        hak_free(block);
    }
}

/* A huge sparse block does not come into memory because it is freed. */
static void clears_what_was_touched(void)
{
    char *block = hak_malloc(8 * CLOSED);
    CHECK(block != NULL);
    size_t page = os_page_size();
    block[3 * page] = 1;
    hak_free(block);
    CHECK(os_resident(block, align_down(8 * CLOSED, page)) <= page);
}

static void sizes_mix(void)
{
    struct {
        char *at;
        size_t size;
    } held[HELD] = {{NULL, 0}};
    uint64_t state = 1;
    for (unsigned i = 0; i < scaled_work(20000); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned which = (state >> 33) % HELD;
        if (held[which].at != NULL)
            CHECK(held[which].at[held[which].size - 1] == (char)which);
        if ((state >> 60) == 0 && held[which].at != NULL) {
            size_t size = held[which].size - (state >> 40) % 20000 + 10000;
            held[which].at = hak_realloc(held[which].at, size);
            CHECK(held[which].at != NULL && hak_malloc_usable_size(held[which].at) == size);
            held[which].size = size;
        } else {
            hak_free(held[which].at);
            held[which].size = 33000 + (state >> 40) % ((state >> 39 & 1) != 0 ? 30000 : 250000);
            held[which].at = get(held[which].size);
        }
        memset(held[which].at, (int)which, held[which].size);
    }
    for (unsigned which = 0; which < HELD; which++)
        hak_free(held[which].at);
}

/* Whatever the kernel refuses: less is closed, and what was freed reads as zero when it is lent. */
static void lives_with_refusals(void)
{
    for (uint64_t seed = 1; seed < 2 + scaled_work(10); seed++) {
        static char *held[HELD];
        fake_os_refuse_some(FAKE_COMMIT | FAKE_CLOSE | FAKE_PURGE, 2, seed);
        for (unsigned i = 0; i < 500; i++) {
            size_t size = 33000 + i * 7919 % 200000;
            char **block = &held[i * i % HELD];
            hak_free(*block);
            *block = hak_malloc(size);
            CHECK(*block == NULL || is_zero(*block, size));
            if (*block != NULL)
                memset(*block, 1, size);
        }
        fake_os_obey();
        for (unsigned i = 0; i < HELD; i++)
            hak_free(held[i]);
        memset(held, 0, sizeof held);
    }
}

/* A closed page of memory that keeps its pages cannot be cleared. */
static void locked_blocks_can_be_freed(void)
{
    size_t page = os_page_size();
    knob_set(KNOB_KEPT_MOST_BYTES, 0, 0);
    char *block = get(CLOSED);
    memset(block, 1, CLOSED);
    if (syscall(SYS_mlock2, block, align_up(CLOSED, page) + page, 1 /* MLOCK_ONFAULT */) != 0)
        CANNOT_TRY("memory cannot be locked here");
    hak_free(block);
    others_come_and_go(CLOSED);
}

/* Where the kernel makes nothing writable that was closed: the rest is used again. */
static void what_cannot_be_opened_is_all_that_is_lost(void)
{
    enum { BLOCKS = 20000, SIZE = 64 };
    static void *blocks[BLOCKS];
    static void *large[HELD];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = hak_malloc(SIZE);
    for (int i = 0; i < HELD; i++)
        large[i] = get(OPEN);
    struct span_stats before;
    struct span_stats after;
    span_stats(&before);
    fake_os_refuse(FAKE_COMMIT, 1, FAKE_EVERY);
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    for (int i = 0; i < HELD; i++)
        hak_free(large[i]);
    hak_purge(HAK_PURGE_CACHED);
    fake_os_obey();
    span_stats(&after);
    size_t lost = before.committed_bytes - after.committed_bytes;
    CHECK(lost > 0 && lost < before.used_bytes - before.used_bytes / 4);
    for (int i = 0; i < HELD; i++)
        hak_free(get(OPEN));
}

/* ---- Misuse. */

static void write_after_free(uintptr_t size)
{
    char *block = get(size);
    hak_free(block);
    ((volatile char *)block)[size / 2] = 1;
    others_come_and_go(size);
}

static volatile char *stale;

static void write_to_stale(void)
{
    stale[0] = 1;
}

/* At `at` by another thread, while it is cleared: what is not in memory goes back then, behind what has been cleared. */
static void free_while_it_is_written(char *block, char *at)
{
    stale = at;
    write_to_stale();
    fake_os_before_purge(write_to_stale);
    hak_free(block);
    fake_os_before_purge(NULL);
}

static void write_before_it_is_closed(uintptr_t size)
{
    char *block = hak_malloc(size);
    free_while_it_is_written(block, block);
    others_come_and_go(size);
}

/* The same, to a page that is opened only when its block is lent for more than the last time. */
static void write_behind_what_is_lent_next(uintptr_t page)
{
    size_t size = CLOSED_LEAST + page;
    size_t less = CLOSED_LEAST - page;
    char *block = hak_malloc(size);
    free_while_it_is_written(block, block + less);
    others_come_and_go(OPEN);
    char *again = get(less);
    CHECK(again == block);
    hak_free(again);
    others_come_and_go(OPEN);
    hak_free(get(size));
}

static void write_where_closing_is_refused(uintptr_t size)
{
    fake_os_refuse(FAKE_CLOSE, 1, FAKE_EVERY);
    write_after_free(size);
}

/* Its closed page is where a larger block's was. */
static void write_behind_smaller(uintptr_t size)
{
    char *block = get(OPEN);
    if (rest(block, size) < 0)
        return;
    ((volatile char *)block)[OPEN - 1] = 1;
    hak_free(block);
}

static void write_to_fence(uintptr_t size)
{
    volatile char *block = get(size);
    for (size_t i = 0; i < size + UNIT_SIZE; i++)
        block[i] = 1;
}

static void finds_misuse(void)
{
    CHECK(child_dies_of(SIGABRT, write_after_free, OPEN, "write after free"));
    CHECK(child_dies_of(SIGSEGV, write_after_free, CLOSED, ""));
    CHECK(child_dies_of(SIGABRT, write_where_closing_is_refused, CLOSED, "write after free"));
    CHECK(child_dies_of(SIGABRT, write_before_it_is_closed, CLOSED, "write after free"));
    /* Larger pages are too large a part of such a block; of those that are not its host's an emulator does not say which are there. */
    if (os_page_size() <= (process_is_emulated() ? 4096 : 16384))
        CHECK(child_dies_of(SIGABRT, write_behind_what_is_lent_next, os_page_size(), "write after free"));
    CHECK(child_dies_of(SIGABRT, write_behind_smaller, OPEN - 8000, "overflow"));
    CHECK(child_dies_of(SIGSEGV, write_to_fence, OPEN, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(freed_blocks_rest), UNIT_TEST(clears_what_was_touched), UNIT_TEST(sizes_mix),
        UNIT_TEST(lives_with_refusals), UNIT_TEST(locked_blocks_can_be_freed), UNIT_TEST(what_cannot_be_opened_is_all_that_is_lost),
        UNIT_TEST(finds_misuse),
    };
    return cmocka_run_group_tests_name("fenced", tests, NULL, NULL);
}
