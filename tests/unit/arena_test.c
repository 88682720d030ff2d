/* arena/arena.h: the range, its growth, and the tag of any 64-bit value. */
#include "unit.h"

#include <string.h>
#include <sys/mman.h>

#include "arena/arena.h"
#include "fake_os.h"
#include "os/os.h"
#include "random.h"

static size_t range_bytes(void)
{
    return arena.limit << POINTER_ALIGN_SHIFT;
}

static void init(void)
{
    size_class_init();
    CHECK(arena_init());
}

static char *grow(size_t bytes, size_t *got)
{
    void *at = NULL;
    CHECK(arena_grow(bytes, &at, got));
    return at;
}

static void knows_nothing_before_the_start(void)
{
    uint64_t seed = 3;
    for (int i = 0; i < 1000; i++)
        CHECK(arena_tag((void *)random_next(&seed)) == TAG_NONE);
    CHECK(arena_tag(NULL) == TAG_NONE);
}

/* A thread that frees NULL while another starts the allocator may see the limit before the base or the tags. */
static void null_is_harmless_while_starting(void)
{
    const struct arena before = arena;
    size_t got = 0;
    init();
    grow(SUPERSLAB_SIZE, &got);
    const struct arena after = arena;
    for (int mixture = 0; mixture < 4; mixture++) {
        arena.base = (mixture & 1) != 0 ? after.base : before.base;
        arena.tags = (mixture & 2) != 0 ? after.tags : before.tags;
        CHECK(arena_tag(NULL) == TAG_NONE);
    }
}

static void grows_in_steps(void)
{
    init();
    CHECK((uintptr_t)arena.base % SUPERSLAB_SIZE == 0);
    CHECK(range_bytes() == 0);
    for (size_t i = 0; i < 20; i++) {
        size_t before = range_bytes();
        size_t got = 0;
        char *at = grow(i * SUPERSLAB_SIZE + 1, &got);
        CHECK(at == arena.base + before);
        CHECK(got % SUPERSLAB_SIZE == 0 && got >= i * SUPERSLAB_SIZE + 1);
        CHECK(got >= before / 4);
        CHECK(range_bytes() == before + got);
    }
}

static void refuses_what_cannot_fit(void)
{
    init();
    void *at;
    size_t got;
    CHECK(!arena_grow((size_t)1 << 60, &at, &got));
    CHECK(!arena_grow(SIZE_MAX / 2, &at, &got));
    CHECK(range_bytes() == 0);
    CHECK(arena_grow(SUPERSLAB_SIZE, &at, &got));
}

static void new_units_are_untagged(void)
{
    init();
    size_t got = 0;
    grow(SUPERSLAB_SIZE, &got);
    grow(SUPERSLAB_SIZE, &got);
    for (size_t offset = 0; offset < range_bytes(); offset += UNIT_SIZE) {
        CHECK(arena_tag(arena.base + offset) == TAG_NONE);
        CHECK(arena_span(arena.base + offset) == NULL);
    }
}

static void assigns_tags(void)
{
    init();
    size_t got = 0;
    grow(SUPERSLAB_SIZE, &got);
    int span;
    char *at = arena.base + 5 * UNIT_SIZE;
    arena_assign(at, 3, TAG_LARGE, &span);
    for (size_t offset = 0; offset < 12 * UNIT_SIZE; offset += 8) {
        char *p = arena.base + offset;
        bool inside = p >= at && p < at + 3 * UNIT_SIZE;
        CHECK(arena_tag(p) == (inside ? (uintptr_t)TAG_LARGE : (uintptr_t)TAG_NONE));
        CHECK(arena_span(p) == (inside ? &span : NULL));
        CHECK(arena_unit(p) == offset >> UNIT_SHIFT);
    }
    for (size_t off = 1; off < 8; off++)
        CHECK(arena_tag(at + off) == TAG_NONE);
    arena_assign(at, 3, TAG_NONE, NULL);
    CHECK(arena_tag(at) == TAG_NONE);
}

/* With every unit tagged, only what is outside or misaligned may be TAG_NONE. */
static void check_tag(uintptr_t value)
{
    uintptr_t offset = value - (uintptr_t)arena.base;
    bool is_place_of_block = offset < range_bytes() && value % 8 == 0;
    CHECK(arena_tag((void *)value) == (is_place_of_block ? (uintptr_t)TAG_LARGE : (uintptr_t)TAG_NONE));
}

static void any_value_has_a_tag(void)
{
    init();
    size_t got = 0;
    grow(SUPERSLAB_SIZE, &got);
    arena_assign(arena.base, range_bytes() >> UNIT_SHIFT, TAG_LARGE, NULL);
    uintptr_t base = (uintptr_t)arena.base;
    uintptr_t end = base + range_bytes();
    for (uintptr_t near = 0; near <= 4096; near++) {
        const uintptr_t edges[] = {0, base, end, (uintptr_t)1 << 47, (uintptr_t)1 << 63, base + (end - base) / 2};
        for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
            check_tag(edges[i] + near);
            check_tag(edges[i] - near);
        }
    }
    uint64_t seed = 4;
    for (int i = 0; i < 1000000; i++) {
        uint64_t value = random_next(&seed);
        check_tag(value);
        check_tag(base + value % (4 * (end - base)));
        check_tag(base + (value & ~((uint64_t)range_bytes() * 2 - 1)));
        for (unsigned bit = 0; bit < 64; bit += 7)
            check_tag(base + ((uint64_t)1 << bit));
    }
}

static void survives_refusal_at_the_start(void)
{
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    CHECK(!arena_init());
    CHECK(arena_tag(arena.base) == TAG_NONE);
    fake_os_obey();
    init();
    size_t got = 0;
    char *at = grow(SUPERSLAB_SIZE, &got);
    arena_assign(at, got >> UNIT_SHIFT, TAG_LARGE, NULL);
    check_tag((uintptr_t)at);
    check_tag((uintptr_t)at + got);
}

static void survives_refused_growth(void)
{
    init();
    size_t got = 0;
    grow(SUPERSLAB_SIZE, &got);
    size_t before = range_bytes();
    /* An unknown RLIMIT_AS refuses nothing. */
    const unsigned refusals[] = {FAKE_ALL & ~(unsigned)FAKE_LIMIT, FAKE_COMMIT, FAKE_RESERVE};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        void *at;
        fake_os_refuse(refusals[i], 1, FAKE_EVERY);
        bool grown = arena_grow(SUPERSLAB_SIZE, &at, &got);
        /* Where all is reserved at the start, or tables are long enough already, some calls are not needed; or only for a larger step. */
        CHECK(!(grown && fake_os_refused() > 0) || got < 16 * MIB);
        CHECK(fake_os_refused() < 16); /* where nothing can be reserved, places in it are not tried one by one */
        if (!grown)
            CHECK(range_bytes() == before);
        fake_os_obey();
        before = range_bytes();
        CHECK(grow(SUPERSLAB_SIZE, &got) == arena.base + before);
        before = range_bytes();
    }
}

/* One refused reservation: a smaller step will do. */
static void takes_less_when_refused_once(void)
{
    init();
    size_t step = 0;
    size_t got = 0;
    void *at;
    grow(SUPERSLAB_SIZE, &step);
    size_t before = range_bytes();
    fake_os_refuse(FAKE_RESERVE, 1, 1);
    CHECK(arena_grow(SUPERSLAB_SIZE, &at, &got));
    fake_os_obey();
    bool reserved_before = fake_os_refused() == 0; /* whole, at the start */
    CHECK(reserved_before == HAK_SANITIZED);
    CHECK((char *)at == arena.base + before && got == (reserved_before ? step : step / 2));
}

static void steps_over_foreign_mappings(void)
{
    if (HAK_SANITIZED) {
        CANNOT_TRY("the whole range is reserved at the start: nothing foreign can be in it");
        return;
    }
    init();
    const size_t page = os_page_size();
    for (int i = 0; i < 5; i++) {
        size_t got = 0;
        size_t before = range_bytes();
        size_t bytes = page << (2 * i);
        char *foreign = mmap(arena.base + before + page, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK(foreign == arena.base + before + page);
        memset(foreign, 0x5a, bytes);
        char *at = grow(SUPERSLAB_SIZE, &got);
        CHECK(at >= foreign + bytes);
        CHECK((uintptr_t)at % SUPERSLAB_SIZE == 0);
        CHECK(range_bytes() == (size_t)(at - arena.base) + got);
        for (size_t offset = 0; offset < bytes; offset += 4096)
            CHECK(foreign[offset] == 0x5a);
        CHECK(arena_tag(foreign + 8) == TAG_NONE);
    }
}

/* Whoever maps memory right behind what the tables need now is not in the way of what they need later. */
static void tables_lead_the_range(void)
{
    if (HAK_SANITIZED) {
        CANNOT_TRY("the whole range is reserved at the start");
        return;
    }
    init();
    size_t got = 0;
    grow(SUPERSLAB_SIZE, &got);
    char *const ends[] = {(char *)(arena.tags + (range_bytes() >> UNIT_SHIFT)), (char *)(arena.spans + (range_bytes() >> UNIT_SHIFT)),
                          arena.superslabs + (range_bytes() >> SUPERSLAB_SHIFT) * ARENA_SUPERSLAB_ENTRY};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) { /* the kernel refuses, an emulator may give another place */
        void *at = (void *)align_up((uintptr_t)ends[i], os_page_size());
        CHECK(mmap(at, os_page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at);
    }
    while (range_bytes() < 2 * GIB)
        grow(256 * MIB, &got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(knows_nothing_before_the_start), UNIT_TEST(null_is_harmless_while_starting),
        UNIT_TEST(grows_in_steps),
        UNIT_TEST(refuses_what_cannot_fit),        UNIT_TEST(new_units_are_untagged),
        UNIT_TEST(assigns_tags),                   UNIT_TEST(any_value_has_a_tag),
        UNIT_TEST(survives_refusal_at_the_start),  UNIT_TEST(survives_refused_growth),
        UNIT_TEST(takes_less_when_refused_once),   UNIT_TEST(steps_over_foreign_mappings),
        UNIT_TEST(tables_lead_the_range),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
