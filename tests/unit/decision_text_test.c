/* learn/decision_text.h: decisions in words. */
#include "unit.h"

#include <string.h>

#include "config/size_class.h"
#include "learn/decision_text.h"

static void check_text(struct decision decision, const char *wanted)
{
    char text[300];
    struct out out;
    out_to_memory(&out, text, sizeof text - 1);
    decision_text(&out, &decision);
    text[out.length] = '\0';
    CHECK(out_end(&out) == 0);
    CHECK(strcmp(text, wanted) == 0);
}

static void knobs_are_said_with_their_blocks(void)
{
    size_class_init();
    struct decision age = {.kind = DECIDED_KNOB, .what = KNOB_BIGCACHE_MS, .index = 5, .before = 1000, .after = 4000, .applied = 1};
    check_text(age, "set bigcache_ms of blocks up to 2048 KiB from 1000 to 4000 ms");
    age.index = 15;
    age.evidence = 12;
    age.gain = 18400;
    check_text(age, "set bigcache_ms of blocks above 1048576 KiB from 1000 to 4000 ms; from 12 epochs; expected to save 1.8 % of the cost");
    age.applied = 0;
    age.gain = -100000;
    check_text(age, "would set bigcache_ms of blocks above 1048576 KiB from 1000 to 4000 ms; from 12 epochs; expected to add 10.0 % of the cost");
    struct decision magazine = {.kind = DECIDED_KNOB, .what = KNOB_MAGAZINE_BYTES, .index = 4, .before = 1, .after = 2, .gain = 999};
    check_text(magazine, "would set magazine_bytes of blocks of 64 B from 1 to 2 bytes");
    magazine.subject = 15;
    check_text(magazine, "would set magazine_bytes of blocks of 64 B, and 15 more, from 1 to 2 bytes");
    struct decision purge = {.kind = DECIDED_KNOB, .what = KNOB_PURGE_MS, .before = 1000, .after = 0, .applied = 1};
    check_text(purge, "set purge_ms from 1000 to 0 ms");
}

static void others_are_said(void)
{
    check_text((struct decision){.kind = DECIDED_STATE, .what = 1}, "frozen: the best policy stays in force");
    check_text((struct decision){.kind = DECIDED_STATE, .what = 0}, "learns: policies compete");
    check_text((struct decision){.kind = DECIDED_STATE, .what = 99}, "another state");
    check_text((struct decision){.kind = DECIDED_CLASS_OPENED, .subject = 80, .applied = 1, .evidence = 5}, "opened a size class of 80 B; from 5 samples");
    check_text((struct decision){.kind = DECIDED_CLASS_OPENED, .subject = 80, .applied = 1, .gain = 25000}, "opened a size class of 80 B; expected to save 2.5 % of the memory of small blocks");
    check_text((struct decision){.kind = DECIDED_CLASS_CLOSED, .subject = 80}, "would close a size class of 80 B");
    check_text((struct decision){.kind = DECIDED_SITE, .subject = 0xabc, .before = 1000, .after = 20, .applied = 1},
               "keeps freed blocks of site 0xabc for 20 ms instead of 1000");
    check_text((struct decision){.kind = DECIDED_KILLED, .index = 1, .after = 128},
               "stops: the program is never the same for long; rests for 128 epochs");
    check_text((struct decision){.kind = DECIDED_KILLED, .after = 64},
               "stops: what was tried has cost more than it saved; rests for 64 epochs");
}

/* Read while it was written over: nothing is better than nonsense. */
static void impossible_ones_are_left_out(void)
{
    check_text((struct decision){.kind = DECIDED_KNOB, .what = KNOBS}, "");
    check_text((struct decision){.kind = DECIDED_KNOB, .what = KNOB_BIGCACHE_MS, .index = SIZE_BINS}, "");
    check_text((struct decision){.kind = DECIDED_KNOB, .what = KNOB_PURGE_MS, .index = 1}, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(knobs_are_said_with_their_blocks),
        UNIT_TEST(others_are_said),
        UNIT_TEST(impossible_ones_are_left_out),
    };
    return cmocka_run_group_tests_name("decision_text", tests, NULL, NULL);
}
