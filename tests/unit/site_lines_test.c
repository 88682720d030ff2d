/* learn/site_lines.h: how sites are kept, in a saved policy. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "fake_os.h"
#include "hakmem.h"
#include "heap/events.h"
#include "heaps.h"
#include "learn/site_lines.h"
#include "learn/sites.h"

enum { HERE = 1001, THERE = 2002, START_MS = 1000000 };

static void start(void)
{
    fake_clock_set(START_MS);
    heap_events.site = sites_of_request;
    (void)heap_own();
}

static uint32_t patience_of(uintptr_t word)
{
    uint32_t number = sites_number(word);
    CHECK(number != SITE_NONE);
    return large_sites[number].patience;
}

static const struct policy_key us = {"/bin/a", "ab12", 1000};

static enum policy_is read_lines(const char *lines, bool apply, char *what)
{
    char text[2000];
    int length = snprintf(text, sizeof text, "hakmem-policy 1\nprogram /bin/a\nbuild-id ab12\n%s\nend\n", lines);
    CHECK(length > 0 && (size_t)length < sizeof text);
    struct policy_found found;
    policy_text_read(text, (size_t)length, &us, &found);
    if (found.is == POLICY_THERE && apply)
        policy_text_apply(text, &found);
    if (what != NULL)
        strcpy(what, found.what);
    return found.is;
}

static void a_saved_policy_tells_how_sites_are_kept(void)
{
    start();
    CHECK(read_lines("site 0x3e9 keep 0\nsite 0x7d2 keep 4 # why\nsite 0xfffffffffffffffe keep 1", false, NULL) == POLICY_THERE);
    CHECK(large_sites == NULL);
    CHECK(read_lines("site 0x3e9 keep 0\nsite 0x7d2 keep 4 # why\nsite 0xfffffffffffffffe keep 1", true, NULL) == POLICY_THERE);
    CHECK(patience_of(HERE) == PATIENCE_NONE && patience_of(THERE) == 2 && patience_of(UINTPTR_MAX - 1) == 0);
    CHECK(large_sites_special == 2);
    char what[200];
    static const char *const wrong[][2] = {
        {"site", "a site is"}, {"site 12 keep 1", "a site is"}, {"site 0x0 keep 1", "a site is"}, {"site 0x12", "comes keep"},
        {"site 0x12 kept 1", "comes keep"}, {"site 0x12 keep 3", "keep is"}, {"site 0x12 keep 16", "keep"},
        {"site 0x12 keep", "keep"}, {"site 0x12 keep 1 2", ""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(read_lines(wrong[i][0], false, what) == POLICY_DAMAGED);
        CHECK(strstr(what, wrong[i][1]) != NULL);
    }
}

static void what_is_in_force_is_written(void)
{
    start();
    sites_preset(HERE, PATIENCE_NONE);
    sites_preset(THERE, 3);
    sites_preset(3003, 0);
    void *p = hak_alloc_at(MIB, HERE);
    CHECK(p != NULL);
    hak_free(p);
    char text[4000];
    struct out out;
    out_to_memory(&out, text, sizeof text);
    site_lines_write(&out);
    CHECK(out_end(&out) == 0);
    text[out.length] = '\0';
    CHECK(strcmp(text, "site 0x3e9 keep 0 # times as long as others; 1 requests of 1024 KiB on average\n"
                       "site 0x7d2 keep 8 # times as long as others; 0 requests of 0 KiB on average\n") == 0);
    CHECK(read_lines(text, true, NULL) == POLICY_THERE);
    CHECK(large_sites_special == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(a_saved_policy_tells_how_sites_are_kept),
        UNIT_TEST(what_is_in_force_is_written),
    };
    return cmocka_run_group_tests_name("site_lines", tests, NULL, NULL);
}
