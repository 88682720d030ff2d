/* learn/policy_text.h: any text. One that is made of legal lines says exactly what the lines say; of any other, reading changes
 * nothing, what is found lies in the text, and what is in force after it was applied can be written and read again. */
#include "learn/policy_text.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "config/knobs.h"
#include "config/policy.h"
#include "fuzz.h"
#include "policies.h"

enum { TEXT_MOST = 4096, WRITTEN_MOST = 1 << 18, LINE_MOST = 200 };

static const struct policy_key us = {"/bin/us", "ab12", 99};
static char text[TEXT_MOST];
static size_t length;

static void add(const char *line)
{
    size_t bytes = strlen(line);
    if (length + bytes <= sizeof text) {
        memcpy(text + length, line, bytes);
        length += bytes;
    }
}

/* ---- A text of legal lines, and what must be in force after it. */

static uint64_t read_value(struct input *input, const struct knob_info *info)
{
    switch (input_byte(input) % 3) {
    case 0:
        return info->least;
    case 1:
        return info->most;
    default:
        return info->least + input_number(input, 8) % (info->most - info->least + 1);
    }
}

static void add_knob(struct input *input, struct policy *wanted)
{
    char line[LINE_MOST];
    char index_text[16] = "";
    enum knob knob = input_byte(input) % KNOBS;
    const struct knob_info *info = &knob_info[knob];
    uint64_t value = read_value(input, info);
    bool all = info->count == 1 || input_byte(input) % 4 == 0;
    unsigned index = all ? 0 : (unsigned)input_below(input, info->count);
    if (!all)
        snprintf(index_text, sizeof index_text, "[%u]", index);
    snprintf(line, sizeof line, "knob %s%s\t%lu%s\n", info->name, index_text, (unsigned long)value,
             input_byte(input) % 4 == 0 ? " # why" : "");
    size_t before = length;
    add(line);
    if (wanted != NULL && length > before)
        for (unsigned i = index; i < (all ? info->count : index + 1); i++)
            *(size_t *)(uintptr_t)knob_in(wanted, knob, i) = value;
}

static void add_program(struct input *input, const char *key, struct policy *wanted)
{
    add(key);
    for (unsigned lines = input_byte(input) % 8; lines > 0; lines--) {
        if (input_byte(input) % 8 == 0)
            add("\n# a comment\n");
        else
            add_knob(input, wanted);
    }
    length = length < sizeof text - 8 ? length : sizeof text - 8;
    add("end\n");
}

static void check_legal(struct input *input)
{
    struct policy wanted = policy;
    bool before = input_byte(input) % 2 == 0;
    bool ours = input_byte(input) % 4 != 0;
    add("hakmem-policy 1\n");
    if (before)
        add_program(input, "program /bin/other\nsize 7\n", NULL);
    if (ours)
        add_program(input, "program /bin/us\nbuild-id ab12\n", &wanted);
    if (!before)
        add_program(input, "program /bin/us\nbuild-id ab13\nepochs 3\n", NULL);
    struct policy_found found;
    policy_text_read(text, length, &us, &found);
    CHECK(found.is == (ours ? POLICY_THERE : before ? POLICY_NOT_THERE : POLICY_OF_OTHER_BUILD));
    if (ours)
        policy_text_apply(text, &found);
    CHECK(policies_equal(policy, wanted));
}

/* ---- Any text. */

static void check_written(void)
{
    static char written[WRITTEN_MOST];
    struct policy in_force = policy;
    struct policy_found found;
    struct out out;
    out_to_memory(&out, written, sizeof written);
    policy_text_begin(&out);
    policy_text_write(&out, &us, &(struct policy_evidence){1, 2, 3}, NULL, NULL);
    CHECK(out_end(&out) == 0);
    CHECK(policy_set_mode("balanced"));
    policy_text_read(written, out.length, &us, &found);
    CHECK(found.is == POLICY_THERE && found.evidence.epochs == 1 && found.evidence.saved == 3);
    policy_text_apply(written, &found);
    for (enum knob knob = 0; knob < KNOBS; knob++)
        for (unsigned i = 0; i < knob_info[knob].count && i < SIZE_CLASSES_FIXED; i++)
            CHECK(knob_get(knob, i) == *knob_in(&in_force, knob, i));
}

static void check_any(void)
{
    struct policy before = policy;
    struct policy_found found;
    policy_text_read(text, length, &us, &found);
    CHECK(policies_equal(policy, before));
    CHECK(found.begin <= found.end && found.end <= length);
    if (found.is == POLICY_DAMAGED)
        CHECK(found.line >= 1 && found.what[0] != '\0' && memchr(found.what, '\0', sizeof found.what) != NULL);
    if (found.is == POLICY_THERE) {
        CHECK(found.begin < found.end);
        policy_text_apply(text, &found);
        for (enum knob knob = 0; knob < KNOBS; knob++)
            for (unsigned i = 0; i < knob_info[knob].count; i++)
                CHECK(knob_get(knob, i) >= knob_info[knob].least && knob_get(knob, i) <= knob_info[knob].most);
        check_written();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    struct policy before = policy;
    length = 0;
    if (input_byte(&input) % 4 == 0) {
        check_legal(&input);
    } else {
        length = (size_t)(input.end - input.at) < TEXT_MOST ? (size_t)(input.end - input.at) : TEXT_MOST;
        memcpy(text, input.at, length);
        check_any();
    }
    policy = before;
    return 0;
}
