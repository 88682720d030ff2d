/* learn/policy_text.h: the text of what was learned, and everything that may be wrong with it. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "config/knobs.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "heaps.h"
#include "learn/policy_text.h"

#define FIRST "hakmem-policy 1\n"
#define OURS "program /bin/a\nbuild-id ab12\n"
#define OTHERS "program /bin/b\nsize 77\nknob purge_ms 3\nend\n"

static const struct policy_key us = {"/bin/a", "ab12", 1000};

static struct policy_found found_in(const char *text, const struct policy_key *key)
{
    struct policy_found found;
    policy_text_read(text, strlen(text), key, &found);
    return found;
}

static void load(const char *text)
{
    struct policy_found found = found_in(text, &us);
    CHECK(found.is == POLICY_THERE);
    policy_text_apply(text, &found);
}

static void values_take_effect(void)
{
    load("# a comment first\n\n" FIRST OTHERS "\n  " OURS "epochs 5\nseconds 6\nsaved 7 # ppm\n\tknob purge_ms 2000\nknob bigcache_ms[5] 4000 #x\n"
         "knob magazine_bytes 128 # all\nknob magazine_bytes[3] 4096\nend");
    CHECK(policy.purge_ms == 2000);
    CHECK(policy.bigcache_ms[5] == 4000 && policy.bigcache_ms[4] == 1000);
    CHECK(policy.magazine_bytes[3] == 4096 && policy.magazine_bytes[4] == 128 && policy.magazine_bytes[0] == 128);
}

static void evidence_is_told(void)
{
    struct policy_found found = found_in(FIRST OURS "epochs 5\nseconds 6\nsaved 7\nend\n", &us);
    CHECK(found.is == POLICY_THERE && found.evidence.epochs == 5 && found.evidence.seconds == 6 && found.evidence.saved == 7);
}

static void reading_alone_changes_nothing(void)
{
    (void)found_in(FIRST OURS "knob purge_ms 2000\nend\n", &us);
    CHECK(policy.purge_ms == 1000);
}

static void classes_are_opened(void)
{
    (void)heap_own();
    load(FIRST OURS "class 144 evidence 5 # refills\nclass 64 evidence 1\nend\n"); /* there is one of 64 bytes */
    CHECK(size_class_bytes(size_class_of(136)) == 144 && size_class_bytes(size_class_of(60)) == 64);
    char written[1000];
    struct out out;
    out_to_memory(&out, written, sizeof written - 1);
    policy_text_write(&out, &us, &(struct policy_evidence){0}, NULL, NULL);
    written[out.length] = '\0';
    CHECK(out_end(&out) == 0 && strstr(written, "\nclass 144 evidence 5 ") != NULL && strstr(written, "class 64") == NULL);
}

static void what_the_user_has_set_stays(void)
{
    knob_pin(KNOB_PURGE_MS);
    load(FIRST OURS "knob purge_ms 2000\nend\n");
    CHECK(policy.purge_ms == 1000);
}

/* What was learned of a knob that the user has set today. */
static void what_could_not_be_loaded_is_not_dropped(void)
{
    static const char text[] = FIRST OURS "knob purge_ms 2000 # learned\nknob bigcache_bytes 7\nend\n" OTHERS;
    char written[1000];
    struct out out;
    knob_pin(KNOB_PURGE_MS);
    struct policy_found found = found_in(text, &us);
    out_to_memory(&out, written, sizeof written - 1);
    policy_text_write(&out, &us, &found.evidence, text, &found);
    written[out.length] = '\0';
    CHECK(out_end(&out) == 0 && strstr(written, "knob purge_ms 2000\nend\n") != NULL);
    CHECK(strstr(written, "bigcache_bytes") == NULL); /* the mode's value again */
}

static void check_is(const char *text, const struct policy_key *key, enum policy_is is)
{
    CHECK(found_in(text, key).is == is);
}

static void programs_are_told_apart(void)
{
    static const struct policy_key moved = {"/opt/a", "ab12", 1}, rebuilt = {"/bin/a", "ab13", 1000}, stripped = {"/bin/a", "", 1000};
    static const struct policy_key sized = {"/bin/b", "", 77}, resized = {"/bin/b", "", 78}, elsewhere = {"/b", "", 77};
    static const char text[] = FIRST OURS "end\n" OTHERS;
    check_is(text, &us, POLICY_THERE);
    check_is(text, &moved, POLICY_THERE);
    check_is(text, &rebuilt, POLICY_OF_OTHER_BUILD);
    check_is(text, &stripped, POLICY_OF_OTHER_BUILD);
    check_is(text, &sized, POLICY_THERE);
    check_is(text, &resized, POLICY_OF_OTHER_BUILD);
    check_is(text, &elsewhere, POLICY_NOT_THERE);
    check_is(FIRST, &us, POLICY_NOT_THERE);
    /* Of two builds, this one, whichever comes first. */
    check_is(FIRST "program /bin/a\nbuild-id 00\nend\n" OURS "end\n", &us, POLICY_THERE);
    check_is(FIRST OURS "end\nprogram /bin/a\nbuild-id 00\nend\n", &us, POLICY_THERE);
}

static void a_part_is_found_whole(void)
{
    static const char before[] = FIRST "# of b\n" OTHERS "# of a\n";
    static const char part[] = OURS "knob purge_ms 5\nend\n";
    char text[400];
    snprintf(text, sizeof text, "%s%s%s", before, part, "# behind\n");
    struct policy_found found = found_in(text, &us);
    CHECK(found.begin == strlen(before) && found.end == strlen(before) + strlen(part));
    struct policy_key nobody = {"/bin/c", "", 0};
    found = found_in(text, &nobody);
    CHECK(found.begin == strlen(text) && found.end == strlen(text));
}

static void paths_may_hold_anything(void)
{
    static const struct policy_key odd = {"/a b/#1 \x01\xff", "", 5};
    static const char text[] = FIRST "program /a b/#1 ?\xff\nsize 5\nend\n";
    check_is(text, &odd, POLICY_THERE);
    char written[400];
    struct out out;
    out_to_memory(&out, written, sizeof written);
    policy_text_begin(&out);
    policy_text_write(&out, &odd, &(struct policy_evidence){0}, NULL, NULL);
    struct policy_found found;
    policy_text_read(written, out.length, &odd, &found);
    CHECK(out_end(&out) == 0 && found.is == POLICY_THERE);
}

static void what_is_written_is_read(void)
{
    char written[4096];
    struct out out;
    struct policy_evidence evidence = {UINT32_MAX, 3, 1000000};
    knob_set(KNOB_PURGE_MS, 0, 60000);
    knob_set(KNOB_BIGCACHE_MS, 15, 7);
    knob_set(KNOB_MAGAZINE_BYTES, 40, 64);
    knob_set(KNOB_MAGAZINE_BYTES, SIZE_CLASSES - 1, 64); /* of a class made at run time */
    knob_set(KNOB_BIGCACHE_BYTES, 0, 5);
    knob_pin(KNOB_BIGCACHE_BYTES); /* the user's, and no part of what was learned */
    out_to_memory(&out, written, sizeof written);
    policy_text_begin(&out);
    policy_text_write(&out, &us, &evidence, NULL, NULL);
    CHECK(out_end(&out) == 0);
    written[out.length] = '\0';
    CHECK(strstr(written, "bigcache_bytes") == NULL && strstr(written, "[63]") == NULL);
    CHECK(strstr(written, "knob bigcache_ms[15] 7 # bigcache_ms of blocks above 1048576 KiB; 1000 in mode balanced\n") != NULL);
    CHECK(policy_set_mode("balanced"));
    load(written);
    CHECK(policy.purge_ms == 60000 && policy.bigcache_ms[15] == 7 && policy.magazine_bytes[40] == 64);
    struct policy_found found = found_in(written, &us);
    CHECK(memcmp(&found.evidence, &evidence, sizeof evidence) == 0);
}

/* Evidence of many runs adds up. */
static void evidence_is_written_up_to_what_is_read(void)
{
    char written[4096];
    struct out out;
    out_to_memory(&out, written, sizeof written - 1);
    policy_text_begin(&out);
    policy_text_write(&out, &us, &(struct policy_evidence){UINT32_MAX + 1ull, UINT64_MAX, 1000001}, NULL, NULL);
    written[out.length] = '\0';
    struct policy_found found = found_in(written, &us);
    CHECK(out_end(&out) == 0 && found.is == POLICY_THERE);
    CHECK(found.evidence.epochs == UINT32_MAX && found.evidence.seconds == UINT32_MAX && found.evidence.saved == 1000000);
}

static void every_fault_is_named(void)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *what;
    } cases[] = {
        {"", 1, "it is empty"},
        {"# only this\n", 1, "it is empty"},
        {"hakmem-policy 2\n", 1, "it does not begin with \"hakmem-policy 1\""},
        {"\x7f" "ELF", 1, "it does not begin with \"hakmem-policy 1\""},
        {FIRST "knob purge_ms 1\n", 2, "a program comes first"},
        {FIRST "program bin/a\n", 2, "program needs an absolute path"},
        {FIRST "program\n", 2, "program needs an absolute path"},
        {FIRST "program /a\nknob purge_ms 1\n", 3, "behind program comes build-id or size"},
        {FIRST "program /a\nbuild-id\n", 3, "build-id needs hexadecimal digits"},
        {FIRST "program /a\nbuild-id 0xAB\n", 3, "build-id needs hexadecimal digits"},
        {FIRST "program /a\nsize -1\n", 3, "size needs a number, up to 18446744073709551615"},
        {FIRST "program /a\nsize 1\nbuild-id a\n", 4, "a program has one build-id or size"},
        {FIRST "program /a\nsize 1\nprogram /b\n", 4, "the program before has no end"},
        {FIRST "program /a\nsize 1\n", 3, "it is cut off: the last program has no end"},
        {FIRST OURS "end\n" OURS "end\n", 7, "the same program twice"},
        {FIRST OURS "epochs x\nend\n", 4, "epochs needs a number, up to 4294967295"},
        {FIRST OURS "saved 1000001\nend\n", 4, "saved needs a number, up to 1000000"},
        {FIRST OURS "end of it\n", 4, "there is more behind it than belongs there"},
        {FIRST OURS "knob purge_ms 1 2\nend\n", 4, "there is more behind it than belongs there"},
        {FIRST OURS "knob\nend\n", 4, "no such knob"},
        {FIRST OURS "knob guard_bytes 1\nend\n", 4, "no such knob"},
        {FIRST OURS "knob purge_ms\nend\n", 4, "purge_ms is 0 to 60000"},
        {FIRST OURS "knob purge_ms 60001\nend\n", 4, "purge_ms is 0 to 60000"},
        {FIRST OURS "knob purge_doublings 7\nend\n", 4, "purge_doublings is 0 to 6"},
        {FIRST OURS "knob purge_doublings 9\nend\n", 4, "purge_doublings is 0 to 6"},
        {FIRST OURS "knob batch_eighths 99\nend\n", 4, "batch_eighths is 1 to 8"},
        {FIRST OURS "knob thread_cache_bytes 1\nend\n", 4, "thread_cache_bytes is 65536 to 268435456"},
        {FIRST OURS "knob purge_ms[0] 1\nend\n", 4, "purge_ms has no index"},
        {FIRST OURS "knob bigcache_ms[16] 1\nend\n", 4, "bigcache_ms needs an index from 0 to 15"},
        {FIRST OURS "knob bigcache_ms[] 1\nend\n", 4, "bigcache_ms needs an index from 0 to 15"},
        {FIRST OURS "knob bigcache_ms[1 1\nend\n", 4, "bigcache_ms needs an index from 0 to 15"},
        {FIRST OURS "knobs purge_ms 1\nend\n", 4,
         "legal are program, build-id, size, epochs, seconds, saved, knob, class, site, end and comments"},
        {FIRST OURS "class\nend\n", 4, "class needs a number, up to 32768"},
        {FIRST OURS "class 32784 evidence 1\nend\n", 4, "class needs a number, up to 32768"},
        {FIRST OURS "class 72 evidence 1\nend\n", 4, "a class has a multiple of 16 bytes"},
        {FIRST OURS "class 144 1\nend\n", 4, "behind a class comes evidence"},
        {FIRST OURS "class 144 evidence\nend\n", 4, "evidence needs a number, up to 18446744073709551615"},
        /* In the part of another program too. */
        {FIRST OURS "end\nprogram /bin/b\nsize 1\nknob purge_ms x\nend\n", 7, "purge_ms is 0 to 60000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct policy_found found = found_in(cases[i].text, &us);
        CHECK(found.is == POLICY_DAMAGED && found.line == cases[i].line);
        CHECK(strcmp(found.what, cases[i].what) == 0);
    }
}

/* Wherever it is cut off, it is damaged, or as if it had ended there. */
static void cut_off_anywhere_is_noticed(void)
{
    static const char text[] = FIRST OTHERS OURS "epochs 12\nknob purge_ms 2000\nend\n";
    size_t whole = strlen(text) - 1; /* without the last newline it is whole */
    for (size_t length = 0; length < whole; length++) {
        struct policy_found found;
        policy_text_read(text, length, &us, &found);
        CHECK(found.is == POLICY_DAMAGED || found.is == POLICY_NOT_THERE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(values_take_effect),       UNIT_TEST(evidence_is_told),        UNIT_TEST(reading_alone_changes_nothing),
        UNIT_TEST(classes_are_opened), UNIT_TEST(what_the_user_has_set_stays),
        UNIT_TEST(what_could_not_be_loaded_is_not_dropped), UNIT_TEST(programs_are_told_apart), UNIT_TEST(a_part_is_found_whole),
        UNIT_TEST(paths_may_hold_anything),  UNIT_TEST(what_is_written_is_read), UNIT_TEST(every_fault_is_named),
        UNIT_TEST(evidence_is_written_up_to_what_is_read), UNIT_TEST(cut_off_anywhere_is_noticed),
    };
    return cmocka_run_group_tests_name("policy_text", tests, NULL, NULL);
}
