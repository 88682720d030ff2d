#include "fake_os.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "check.h"
#include "fake_calls.h"
#include "os/os.h"
#include "random.h"

enum { KINDS = 20 };

_Static_assert(FAKE_ALL == (1 << KINDS) - 1, "a count for each kind");

static _Atomic unsigned refused_calls;
static _Atomic size_t refuse_first;
static _Atomic size_t refuse_count;
static _Atomic size_t refuse_one_in; /* 0: by number */
static _Atomic uint64_t refuse_seed;
static _Atomic size_t commit_left = SIZE_MAX; /* bytes */
static _Atomic size_t seen;    /* calls of these kinds since fake_os_refuse */
static _Atomic size_t refused;
static _Atomic size_t made[KINDS];
static _Atomic bool secure;
static _Atomic size_t memory_limit = SIZE_MAX;
static _Atomic size_t memory_limit_reads;
static _Atomic size_t processors = SIZE_MAX;
static _Atomic size_t processors_reads;
static void (*during_processors)(void);

void fake_os_refuse(unsigned calls, size_t first, size_t count)
{
    refused_calls = 0;
    refuse_one_in = 0;
    refuse_first = first;
    refuse_count = count;
    seen = 0;
    refused = 0;
    refused_calls = calls;
}

void fake_os_refuse_some(unsigned calls, size_t one_in, uint64_t seed)
{
    fake_os_refuse(0, 1, 0);
    refuse_one_in = one_in;
    refuse_seed = seed;
    refused_calls = calls;
}

void fake_os_set_commit_most(size_t bytes)
{
    commit_left = bytes;
}

void fake_os_obey(void)
{
    refused_calls = 0;
}

size_t fake_os_refused(void)
{
    return refused;
}

size_t fake_os_made(unsigned calls)
{
    size_t sum = 0;
    for (unsigned kind = 0; kind < KINDS; kind++)
        if ((calls >> kind & 1) != 0)
            sum += made[kind];
    return sum;
}

void fake_os_set_secure(bool is_secure)
{
    secure = is_secure;
}

void fake_os_set_memory_limit(size_t bytes)
{
    memory_limit = bytes;
}

size_t fake_os_memory_limit_reads(void)
{
    return memory_limit_reads;
}

void fake_os_set_processors(size_t count)
{
    processors = count;
}

size_t fake_os_processors_reads(void)
{
    return processors_reads;
}

void fake_os_during_processors(void (*what)(void))
{
    during_processors = what;
}

bool fake_os_refuses(enum fake_calls call)
{
    made[__builtin_ctz(call)]++;
    if ((refused_calls & call) == 0)
        return false;
    size_t number = ++seen;
    if (refuse_one_in != 0) {
        uint64_t random = refuse_seed + number;
        if (random_below(&random, refuse_one_in) != 0)
            return false;
    } else if (number < refuse_first || number - refuse_first >= refuse_count)
        return false;
    refused++;
    return true;
}

size_t __real_os_page_size(void);
/* Takes bytes off the bound; false: that many are not left. */
static bool charge(size_t bytes)
{
    size_t left = commit_left;
    do {
        if (left == SIZE_MAX)
            return true;
        if (left < bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&commit_left, &left, left - bytes));
    return true;
}

static void uncharge(size_t bytes)
{
    size_t left = commit_left;
    do {
        if (left == SIZE_MAX)
            return;
    } while (!atomic_compare_exchange_weak(&commit_left, &left, left + bytes));
}

void *__real_os_reserve(void *hint, size_t bytes);
bool __real_os_commit(void *at, size_t bytes);
bool __real_os_purge(void *at, size_t bytes);
bool __real_os_close(void *at, size_t bytes);
bool __real_os_forbid(void *at, size_t bytes);
bool __real_os_renew(void *at, size_t bytes);
bool __real_os_refill_hole(void *at, size_t bytes);
bool __real_os_move(void *from, size_t old_bytes, void *to, size_t new_bytes);
bool __real_os_barrier(void);
bool __real_os_is_secure(void);
bool __real_os_can_move(void *from, size_t bytes);
bool __real_os_holds(const void *at, uint32_t value);
bool __real_os_set_bit(uintptr_t *at, uint32_t low, unsigned bit);
bool __real_os_thread_is_gone(struct os_thread thread);
uint64_t __real_os_random(void);
size_t __real_os_address_limit(void);

size_t __wrap_os_page_size(void);
void *__wrap_os_reserve(void *hint, size_t bytes);
bool __wrap_os_commit(void *at, size_t bytes);
bool __wrap_os_purge(void *at, size_t bytes);
bool __wrap_os_close(void *at, size_t bytes);
enum os_collapse __wrap_os_collapse(void *at);
bool __wrap_os_forbid(void *at, size_t bytes);
bool __wrap_os_is_beyond(size_t bytes);
bool __wrap_os_renew(void *at, size_t bytes);
bool __wrap_os_refill_hole(void *at, size_t bytes);
bool __wrap_os_move(void *from, size_t old_bytes, void *to, size_t new_bytes);
bool __wrap_os_barrier(void);
bool __wrap_os_is_secure(void);
bool __wrap_os_can_move(void *from, size_t bytes);
bool __wrap_os_holds(const void *at, uint32_t value);
bool __wrap_os_set_bit(uintptr_t *at, uint32_t low, unsigned bit);
bool __wrap_os_thread_is_gone(struct os_thread thread);
uint64_t __wrap_os_random(void);
size_t __wrap_os_address_limit(void);
size_t __wrap_os_memory_limit(void);
size_t __wrap_os_processors(void);

static size_t page_size; /* that the environment wants; 0: the system's */

__attribute__((constructor)) static void read_page_size(void)
{
    const char *wanted = getenv("HAK_TEST_PAGE_SIZE");
    page_size = wanted != NULL ? strtoul(wanted, NULL, 10) : 0;
    CHECK(page_size == 0 || (is_power_of_two(page_size) && page_size % __real_os_page_size() == 0));
}

size_t __wrap_os_page_size(void)
{
    return page_size != 0 ? page_size : __real_os_page_size();
}

static void check_pages(const void *at, size_t bytes)
{
    CHECK((uintptr_t)at % __wrap_os_page_size() == 0);
    CHECK(bytes % __wrap_os_page_size() == 0);
}

/* Somewhere, on a large page: what is reserved too much is released again. */
static void *reserve_on_page(size_t bytes)
{
    if (bytes > SIZE_MAX - page_size)
        return NULL;
    char *got = __real_os_reserve(NULL, bytes + page_size);
    if (got == NULL)
        return NULL;
    char *at = (char *)align_up((uintptr_t)got, page_size);
    if (at > got)
        os_release(got, (size_t)(at - got));
    os_release(at + bytes, page_size - (size_t)(at - got));
    return at;
}

void *__wrap_os_reserve(void *hint, size_t bytes)
{
    check_pages(hint, bytes);
    if (fake_os_refuses(FAKE_RESERVE))
        return NULL;
    return hint == NULL && page_size != 0 ? reserve_on_page(bytes) : __real_os_reserve(hint, bytes);
}

bool __wrap_os_commit(void *at, size_t bytes)
{
    check_pages(at, bytes);
    if (fake_os_refuses(FAKE_COMMIT) || !charge(bytes))
        return false;
    if (__real_os_commit(at, bytes))
        return true;
    uncharge(bytes);
    return false;
}

static void (*before_purge)(void);

void fake_os_before_purge(void (*hook)(void))
{
    before_purge = hook;
}

bool __wrap_os_purge(void *at, size_t bytes)
{
    check_pages(at, bytes);
    if (fake_os_refuses(FAKE_PURGE))
        return false;
    if (before_purge != NULL)
        before_purge();
    return __real_os_purge(at, bytes);
}

bool __wrap_os_close(void *at, size_t bytes)
{
    check_pages(at, bytes);
    if (!fake_os_refuses(FAKE_CLOSE))
        return __real_os_close(at, bytes);
    memset(at, 0, bytes); /* that has been done by then */
    return false;
}

static void (*before_collapse)(void);

void fake_os_before_collapse(void (*hook)(void))
{
    before_collapse = hook;
}

enum os_collapse __wrap_os_collapse(void *at)
{
    check_pages(at, os_huge_page_size());
    CHECK((uintptr_t)at % os_huge_page_size() == 0);
    if (fake_os_refuses(FAKE_NEVER_COLLAPSE))
        return OS_NEVER;
    if (fake_os_refuses(FAKE_COLLAPSE))
        return OS_NOT_NOW;
    if (before_collapse != NULL)
        before_collapse();
    return OS_COLLAPSED;
}

bool __wrap_os_forbid(void *at, size_t bytes)
{
    check_pages(at, bytes);
    return !fake_os_refuses(FAKE_CLOSE) && __real_os_forbid(at, bytes);
}

bool __wrap_os_is_beyond(size_t bytes)
{
    (void)bytes;
    return fake_os_refuses(FAKE_BEYOND);
}

bool __wrap_os_renew(void *at, size_t bytes)
{
    check_pages(at, bytes);
    return !fake_os_refuses(FAKE_RENEW) && __real_os_renew(at, bytes);
}

static void (*before_refill)(void);

void fake_os_before_refill(void (*hook)(void))
{
    before_refill = hook;
}

bool __wrap_os_refill_hole(void *at, size_t bytes)
{
    check_pages(at, bytes);
    if (fake_os_refuses(FAKE_REFILL_HOLE))
        return false;
    if (before_refill != NULL)
        before_refill();
    return __real_os_refill_hole(at, bytes);
}

bool __wrap_os_move(void *from, size_t old_bytes, void *to, size_t new_bytes)
{
    check_pages(from, old_bytes);
    check_pages(to, new_bytes);
    if (!fake_os_refuses(FAKE_MOVE))
        return __real_os_move(from, old_bytes, to, new_bytes);
    if (refused % 2 == 0)
        os_release(to, new_bytes);
    return false;
}

static void (*after_barrier)(void);

void fake_os_after_barrier(void (*hook)(void))
{
    after_barrier = hook;
}

bool __wrap_os_barrier(void)
{
    if (fake_os_refuses(FAKE_BARRIER) || !__real_os_barrier())
        return false;
    if (after_barrier != NULL)
        after_barrier();
    return true;
}

bool __wrap_os_can_move(void *from, size_t bytes)
{
    return !fake_os_refuses(FAKE_CAN_MOVE) && __real_os_can_move(from, bytes);
}

bool __wrap_os_holds(const void *at, uint32_t value)
{
    return !fake_os_refuses(FAKE_HOLDS) && __real_os_holds(at, value);
}

bool __wrap_os_set_bit(uintptr_t *at, uint32_t low, unsigned bit)
{
    return !fake_os_refuses(FAKE_SET_BIT) && __real_os_set_bit(at, low, bit);
}

bool __wrap_os_thread_is_gone(struct os_thread thread)
{
    return !fake_os_refuses(FAKE_IS_GONE) && __real_os_thread_is_gone(thread);
}

uint64_t __wrap_os_random(void)
{
    return fake_os_refuses(FAKE_RANDOM) ? 0 : __real_os_random();
}

size_t __wrap_os_address_limit(void)
{
    return fake_os_refuses(FAKE_LIMIT) ? SIZE_MAX : __real_os_address_limit();
}

size_t __wrap_os_memory_limit(void)
{
    memory_limit_reads++;
    return memory_limit;
}

size_t __wrap_os_processors(void)
{
    processors_reads++;
    if (during_processors != NULL)
        during_processors();
    return processors;
}

bool __wrap_os_is_secure(void)
{
    return secure || __real_os_is_secure();
}
