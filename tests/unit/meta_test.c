/* arena/meta.h: metadata memory is zeroed, aligned, apart, and reused. */
#include "unit.h"

#include <string.h>

#include "arena/meta.h"
#include "fake_os.h"
#include "random.h"

enum { PIECES = 300, STEPS = 20000, MOST = 20000 };

struct piece {
    unsigned char *at;
    size_t bytes;
    unsigned char fill;
};

static void check_fill(const struct piece *piece, unsigned char fill)
{
    for (size_t i = 0; i < piece->bytes; i++)
        CHECK(piece->at[i] == fill);
}

static void follows_a_model(void)
{
    static struct piece pieces[PIECES];
    uint64_t seed = 5;
    for (int step = 0; step < STEPS; step++) {
        struct piece *piece = &pieces[random_below(&seed, PIECES)];
        if (piece->at != NULL) {
            check_fill(piece, piece->fill);
            meta_free(piece->at, piece->bytes);
            piece->at = NULL;
            continue;
        }
        piece->bytes = 1 + random_below(&seed, random_below(&seed, 20) == 0 ? MOST : 1000);
        piece->fill = (unsigned char)(1 + random_below(&seed, 255));
        piece->at = meta_alloc(piece->bytes);
        CHECK(piece->at != NULL);
        CHECK((uintptr_t)piece->at % 64 == 0);
        check_fill(piece, 0);
        memset(piece->at, piece->fill, piece->bytes);
    }
}

static void aligns(void)
{
    for (size_t align = 64; align <= 4096; align *= 2) {
        CHECK(meta_alloc(64) != NULL);
        CHECK((uintptr_t)meta_alloc_aligned(100, align) % align == 0);
    }
}

/* Small pieces go there first, whatever its place; what wants more of an alignment, or more than there is left, does not. */
static void uses_what_it_is_given(void)
{
    enum { GIVEN = 1000, USED = 700, LARGER = 320 };
    static char given[GIVEN];
    size_t before = meta_committed();
    meta_give(given + 1, GIVEN - 1);
    CHECK(meta_committed() == before + GIVEN - 1);
    char *apart = meta_alloc_aligned(64, 128);
    CHECK(apart < given || apart >= given + GIVEN);
    char *used = meta_alloc(USED);
    CHECK(used > given && used < given + 1 + 64 && (uintptr_t)used % 64 == 0);
    check_fill(&(struct piece){.at = (unsigned char *)used, .bytes = USED}, 0);
    memset(used, 1, USED);
    char *larger = meta_alloc(LARGER);
    CHECK(larger < given || larger >= given + GIVEN);
    size_t pieces = 0;
    for (char *piece = meta_alloc(64); piece >= given && piece < given + GIVEN; piece = meta_alloc(64)) {
        CHECK((uintptr_t)piece % 64 == 0 && piece >= used + USED && piece + 64 <= given + GIVEN);
        pieces++;
    }
    CHECK(pieces >= 2);
}

/* What the alignment of a piece leaves before it: small pieces go there first. */
static void fills_gaps(void)
{
    enum { ALIGN = 16 << 10, SMALL = 73 * 64 }; /* more than what is kept for reuse */
    char *first;
    char *second;
    do {
        first = meta_alloc_aligned(64, ALIGN);
        second = meta_alloc_aligned(64, ALIGN);
    } while (second != first + ALIGN); /* two chunks */
    for (int i = 0; i < (ALIGN - 64) / SMALL; i++) {
        struct piece piece = {.at = meta_alloc(SMALL), .bytes = SMALL};
        CHECK((char *)piece.at > first && (char *)piece.at + SMALL <= second);
        check_fill(&piece, 0);
        memset(piece.at, 0x5a, SMALL);
    }
    char *next = meta_alloc(SMALL);
    CHECK(next < first || next > second);
}

static void reuses_pieces(void)
{
    for (size_t bytes = 1; bytes <= 4608; bytes += 100) {
        void *piece = meta_alloc(bytes);
        meta_free(piece, bytes);
        CHECK(meta_alloc(bytes) == piece);
    }
    meta_free(NULL, 100);
}

static void serves_large_pieces(void)
{
    size_t before = meta_committed();
    unsigned char *large = meta_alloc(10 << 20);
    CHECK(large != NULL);
    CHECK(meta_committed() >= before + (10 << 20));
    memset(large, 1, 10 << 20);
    CHECK(meta_alloc(64) != NULL);
}

static void survives_refusals(void)
{
    const unsigned refusals[] = {FAKE_RESERVE, FAKE_COMMIT};
    for (size_t i = 0; i < 2; i++) {
        size_t before = meta_committed();
        size_t bytes = (size_t)8 << 20;
        fake_os_refuse(refusals[i], 1, FAKE_EVERY);
        CHECK(meta_alloc(bytes) == NULL);
        CHECK(fake_os_refused() > 0);
        CHECK(meta_committed() == before);
        fake_os_obey();
        unsigned char *piece = meta_alloc(bytes);
        CHECK(piece != NULL);
        CHECK(piece[0] == 0 && piece[bytes - 1] == 0);
    }
}

/* Where there is no more for a whole chunk, there may be for what is asked. */
static void makes_do_with_less(void)
{
    const unsigned refusals[] = {FAKE_RESERVE, FAKE_COMMIT};
    for (size_t i = 0; i < 2; i++) {
        fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
        while (meta_alloc(64) != NULL)
            ;
        size_t before = meta_committed();
        fake_os_refuse(refusals[i], 1, 1);
        CHECK(meta_alloc(64) != NULL && fake_os_refused() == 1);
        CHECK(meta_committed() - before < 256 << 10);
        fake_os_obey();
    }
}

/* What is left of a chunk still serves when there are no more. */
static void serves_from_what_it_has(void)
{
    CHECK(meta_alloc(64) != NULL);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    CHECK(meta_alloc(64) != NULL);
    CHECK(fake_os_refused() == 0);
    while (meta_alloc(64) != NULL)
        ;
    CHECK(fake_os_refused() > 0);
    fake_os_obey();
    CHECK(meta_alloc(64) != NULL);
}

/* Pieces that were larger serve as smaller ones, before anything new: once each, and zeroed. */
static void splits_larger_pieces(void)
{
    enum { LARGE = 20 * 64, SMALL = 3 * 64 };
    unsigned char *large = meta_alloc(LARGE);
    CHECK(large != NULL);
    memset(large, 0x5a, LARGE);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    while (meta_alloc(64) != NULL)
        ;
    fake_os_obey();
    CHECK(meta_alloc(SMALL) != NULL); /* of a new chunk, which has room for all that follow */
    meta_free(large, LARGE);
    for (size_t found = 0; found < LARGE / SMALL; found++) {
        unsigned char *small = meta_alloc(SMALL);
        CHECK(small >= large && small + SMALL <= large + LARGE);
        for (int i = 0; i < SMALL; i++)
            CHECK(small[i] == 0);
        memset(small, 0x5a, SMALL);
    }
    unsigned char *left = meta_alloc(LARGE % SMALL);
    CHECK(left >= large && left < large + LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(follows_a_model),     UNIT_TEST(aligns),            UNIT_TEST(reuses_pieces),
        UNIT_TEST(serves_large_pieces), UNIT_TEST(survives_refusals), UNIT_TEST(serves_from_what_it_has),
        UNIT_TEST(makes_do_with_less),
        UNIT_TEST(splits_larger_pieces), UNIT_TEST(fills_gaps),
        UNIT_TEST(uses_what_it_is_given),
    };
    return cmocka_run_group_tests_name("meta", tests, NULL, NULL);
}
