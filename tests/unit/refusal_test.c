/*
 * Every system call refused in turn: a fixed scenario runs in a child with the Nth call refused, for N from 1
 * until the scenario ends without a refusal. Whatever is refused, the caller gets a block, or NULL and ENOMEM;
 * live blocks keep their content; once the system obeys again the same request is served; and in the end
 * nothing is lost.
 */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "api/stats.h"
#include "child.h"
#include "fake_os.h"
#include "heap/orphan.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heaps.h"
#include "process.h"

/* Under ThreadSanitizer, which finds nothing in one thread, a part of the calls will do. */
enum { BLOCKS_MOST = 400, STEP = sizeof HAK_TEST_EMULATOR > 1 ? 5 : 1 /* where all is slow */ };

struct block {
    unsigned char *at;
    size_t bytes;
    unsigned char fill;
};

static struct block blocks[BLOCKS_MOST];
static size_t count;

/* All bytes of small blocks, samples of others. */
static size_t stride(size_t bytes)
{
    return bytes <= 4096 ? 1 : 1021;
}

static void fill_block(struct block *block)
{
    size_t step = stride(block->bytes);
    for (size_t i = 0; i < block->bytes; i += step)
        block->at[i] = block->fill;
}

static void check_bytes(const unsigned char *at, size_t bytes, size_t step, unsigned char wanted)
{
    if (step == 1) {
        CHECK(at[0] == wanted && memcmp(at, at + 1, bytes - 1) == 0);
        return;
    }
    for (size_t i = 0; i < bytes; i += step)
        CHECK(at[i] == wanted);
}

static void check_all(void)
{
    for (size_t i = 0; i < count; i++)
        check_bytes(blocks[i].at, blocks[i].bytes, stride(blocks[i].bytes), blocks[i].fill);
}

enum call { MALLOC, CALLOC, ALIGNED };

static void *call(enum call how, size_t alignment, size_t bytes)
{
    switch (how) {
    case CALLOC:
        return hak_calloc(1, bytes);
    case ALIGNED:
        return hak_aligned_alloc(alignment, bytes);
    default:
        return hak_malloc(bytes);
    }
}

/* After a request that gave nothing. */
static void check_refusal(int error)
{
    CHECK(error == ENOMEM);
    CHECK(fake_os_refused() > 0);
    check_all();
    fake_os_obey();
}

static struct block *add(enum call how, size_t alignment, size_t bytes)
{
    CHECK(count < BLOCKS_MOST);
    struct block *block = &blocks[count];
    errno = 0;
    block->at = call(how, alignment, bytes);
    if (block->at == NULL) {
        check_refusal(errno);
        block->at = call(how, alignment, bytes);
        CHECK(block->at != NULL);
    }
    CHECK((uintptr_t)block->at % alignment == 0);
    if (how == CALLOC)
        check_bytes(block->at, bytes, 1, 0);
    block->bytes = bytes;
    block->fill = (unsigned char)(count % 250 + 1);
    fill_block(block);
    count++;
    return block;
}

/* Fills anew: the sampled bytes depend on the size. */
static void resize(struct block *block, size_t bytes)
{
    size_t kept = bytes < block->bytes ? bytes : block->bytes;
    size_t step = stride(block->bytes);
    errno = 0;
    unsigned char *at = hak_realloc(block->at, bytes);
    if (at == NULL) {
        check_refusal(errno);
        at = hak_realloc(block->at, bytes);
        CHECK(at != NULL);
    }
    check_bytes(at, kept, step, block->fill);
    block->at = at;
    block->bytes = bytes;
    fill_block(block);
}

/* Frees every nth of the blocks from `from` on. */
static void remove_each(size_t from, size_t nth)
{
    size_t to = from;
    for (size_t i = from; i < count; i++) {
        if ((i - from) % nth == 0)
            hak_free(blocks[i].at);
        else
            blocks[to++] = blocks[i];
    }
    count = to;
    check_all();
}

static void small_blocks(void)
{
    for (size_t bytes = 1; bytes <= SMALL_MAX; bytes += bytes / 4 + 1)
        for (int i = 0; i < 3; i++)
            add(i == 0 ? CALLOC : MALLOC, 1, bytes);
    remove_each(0, 2);
    for (size_t align = 16; align <= 32768; align *= 4)
        add(ALIGNED, align, align + 1);
}

static void large_blocks(void)
{
    size_t start = count;
    for (size_t bytes = SMALL_MAX + 1; bytes < (3 << 20); bytes *= 2)
        add(bytes % 3 == 0 ? CALLOC : MALLOC, 1, bytes);
    remove_each(start, 2);
    for (size_t bytes = SMALL_MAX + 1; bytes < (3 << 20); bytes *= 2)
        add(CALLOC, 1, bytes);
    for (size_t align = 65536; align <= (4 << 20); align *= 8)
        add(ALIGNED, align, 100000);
    remove_each(start, 3);
}

static void growth(void)
{
    struct block *first = add(MALLOC, 1, 16);
    struct block *second = add(MALLOC, 1, 24);
    for (size_t bytes = 40; bytes < (4 << 20); bytes = bytes * 5 / 2) {
        resize(first, bytes);
        add(MALLOC, 1, 1 << 16); /* in its way */
        resize(second, bytes + 100);
    }
    resize(first, 1 << 20);
    resize(second, 100000);
    resize(first, 100);
    check_all();
}

/* Serves a thread for which there was no memory for a heap; only its own use cleans it. */
static void clean_orphan(void)
{
    void *block = orphan_malloc(1);
    CHECK(block != NULL);
    struct heap *orphan = heap_of(block);
    shelf_put(orphan, block);
    shelf_release_empty(orphan);
    stock_trim(orphan);
}

static void check_nothing_is_lost(void)
{
    remove_each(0, 1);
    CHECK(count == 0);
    hak_malloc_trim(0);
    clean_orphan();
    hak_malloc_trim(0);
    struct hak_stats stats;
    stats_read(&stats);
    CHECK(stats.small_blocks == 0);
    CHECK(stats.large_blocks == 0);
    CHECK(stats.bigcache_bytes == 0);
    CHECK(span_used_bytes() == 0);
}

static size_t *refused_in_child;

static unsigned refused_calls;
static size_t refused_count;

static void run_scenario(uintptr_t first)
{
    fake_os_refuse(refused_calls, first, refused_count);
    small_blocks();
    large_blocks();
    hak_malloc_trim(0);
    growth();
    remove_each(0, 2);
    hak_malloc_trim(0);
    small_blocks();
    check_all();
    *refused_in_child = fake_os_refused();
    fake_os_obey();
    check_nothing_is_lost();
    small_blocks();
    large_blocks();
    check_all();
}

/* Runs the scenario with `refused` calls refused from each call on. */
static void sweep(unsigned calls, size_t refused, size_t first, size_t last)
{
    refused_calls = calls;
    refused_count = refused;
    refused_in_child = mmap(NULL, sizeof(size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(refused_in_child != MAP_FAILED);
    for (size_t n = first; n <= last; n += STEP) {
        *refused_in_child = 0;
        struct child child = child_run(run_scenario, n);
        if (child.status != 0 || child.output[0] != '\0') {
            fprintf(stderr, "calls 0x%x, %zu refused from call %zu: status 0x%x\n%s", calls, refused, n,
                    (unsigned)child.status, child.output);
            CHECK(!"the scenario ends well");
        }
        if (*refused_in_child == 0)
            return;
    }
    CHECK(first == last);
}

/* What one thread asks for that has no guards, and is no hardened library's. A sanitizer's build lies at no random place. */
static const unsigned kinds = FAKE_RESERVE | FAKE_COMMIT | FAKE_PURGE | FAKE_RENEW | FAKE_REFILL_HOLE | FAKE_MOVE |
                              FAKE_CAN_MOVE | FAKE_LIMIT | (HAK_SANITIZED ? 0 : FAKE_RANDOM);

/* The scenario needs what it is to be refused. */
static void scenario_makes_every_call(void)
{
    for (unsigned left = kinds; left != 0; left &= left - 1) {
        sweep(left & -left, 1, 1, 1);
        CHECK(*refused_in_child == 1);
    }
}

static void each_call_refused_once(void)
{
    sweep(FAKE_ALL, 1, 1, 100000);
}

static void each_call_and_the_next_few(void)
{
    sweep(FAKE_ALL, 4, 1, 100000);
}

static void each_call_and_all_that_follow(void)
{
    sweep(FAKE_ALL, FAKE_EVERY, 1, 100000);
}

static void every_call_of_a_kind(void)
{
    for (unsigned left = kinds; left != 0; left &= left - 1) {
        sweep(left & -left, FAKE_EVERY, 1, 1);
        CHECK(*refused_in_child >= 1);
    }
}

static void what_no_machine_has_is_refused(void)
{
    struct block *block = add(MALLOC, 1, 100000);
    fake_os_refuse(FAKE_BEYOND, 1, FAKE_EVERY);
    errno = 0;
    CHECK(hak_malloc(GIB) == NULL && errno == ENOMEM && fake_os_refused() == 1);
    CHECK(hak_realloc(block->at, 2 * GIB) == NULL && fake_os_refused() > 1);
    check_all();
    fake_os_obey();
    check_nothing_is_lost();
}

/* The real system refuses: there is no more address space. */
static void address_space_runs_out(void)
{
    if (HAK_SANITIZED || process_is_emulated()) {
        CANNOT_TRY("the sanitizers need more of it than there could be; qemu-user does not limit it");
        return;
    }
    enum { MOST = 1000 };
    static unsigned char *held[MOST];
    size_t got = 0;
    CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){400 * MIB, 400 * MIB}) == 0);
    while (got < MOST && (held[got] = hak_malloc(MIB)) != NULL)
        memset(held[got++], 1, MIB);
    CHECK(got > 200 && got < 400);
    CHECK(errno == ENOMEM);
    CHECK(hak_malloc(500 * MIB) == NULL);
    for (size_t i = 0; i < got; i++)
        check_bytes(held[i], MIB, 4096, 1);
    hak_free(held[--got]);
    CHECK(hak_malloc(MIB) != NULL);
    while (got > 0)
        hak_free(held[--got]);
    for (int i = 0; i < 100; i++)
        CHECK(hak_malloc(2 * MIB) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(scenario_makes_every_call),
        UNIT_TEST(each_call_refused_once),
        UNIT_TEST(each_call_and_the_next_few),
        UNIT_TEST(each_call_and_all_that_follow),
        UNIT_TEST(every_call_of_a_kind),
        UNIT_TEST(what_no_machine_has_is_refused),
        UNIT_TEST(address_space_runs_out),
    };
    return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
