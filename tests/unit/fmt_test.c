/* base/fmt.h against snprintf. */
#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"

/* Every capacity from 1 to more than enough: what fits is a prefix of what snprintf writes. */
#define CHECK_FORMAT(...)                                                                              \
    do {                                                                                               \
        char wanted[256];                                                                              \
        size_t length = (size_t)snprintf(wanted, sizeof wanted, __VA_ARGS__);                          \
        for (size_t capacity = 1; capacity <= length + 3; capacity++) {                                \
            char found[256];                                                                           \
            memset(found, '#', sizeof found);                                                          \
            size_t fits = length < capacity - 1 ? length : capacity - 1;                               \
            CHECK(fmt_print(found, capacity, __VA_ARGS__) == fits);                                    \
            CHECK(memcmp(found, wanted, fits) == 0);                                                   \
            CHECK(found[fits] == '\0');                                                                \
            CHECK(found[capacity] == '#');                                                             \
        }                                                                                              \
    } while (0)

static void formats_text(void)
{
    CHECK_FORMAT("%s", "");
    CHECK_FORMAT("nothing to convert");
    CHECK_FORMAT("%s and %s", "one", "two");
    CHECK_FORMAT("%c%c%c", 'a', 'b', 'c');
    CHECK_FORMAT("100%% of %s", "it");
}

static void formats_numbers(void)
{
    CHECK_FORMAT("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
    CHECK_FORMAT("%u %u", 0u, UINT_MAX);
    CHECK_FORMAT("%ld %ld %ld", 0L, LONG_MAX, LONG_MIN);
    CHECK_FORMAT("%lu %lu", 1UL, ULONG_MAX);
    CHECK_FORMAT("%zu %zu", (size_t)0, SIZE_MAX);
    CHECK_FORMAT("%x %x %lx", 0u, 0xdeadbeefu, ULONG_MAX);
}

static void formats_pointers(void)
{
    int here;
    CHECK_FORMAT("%p", (void *)&here);
    CHECK_FORMAT("%p", (void *)UINTPTR_MAX);
    char text[32];
    fmt_print(text, sizeof text, "%p", (void *)NULL);
    CHECK(strcmp(text, "0x0") == 0);
}

static void prints_null_text(void)
{
    char text[32];
    const char *volatile none = NULL;
    CHECK(fmt_print(text, sizeof text, "<%s>", none) == 8);
    CHECK(strcmp(text, "<(null)>") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(formats_text), UNIT_TEST(formats_numbers), UNIT_TEST(formats_pointers), UNIT_TEST(prints_null_text)};
    return cmocka_run_group_tests_name("fmt", tests, NULL, NULL);
}
