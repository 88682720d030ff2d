/* What of the policy is remembered, by the kinds of lines. */
#include <string.h>

#include "base/fmt.h"
#include "config/knobs.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "config/values.h"
#include "learn/class_lines.h"
#include "learn/decision_text.h"
#include "learn/policy_text.h"
#include "learn/site_lines.h"

/* "NAME" or "NAME[INDEX]": the indices from *first to *end. */
static bool find_knob(const struct policy_line *line, struct policy_word word, enum knob *knob, unsigned *first, unsigned *end)
{
    const char *bracket = memchr(word.at, '[', (size_t)(word.end - word.at));
    const char *name_end = bracket != NULL ? bracket : word.end;
    size_t index = 0;
    *knob = 0;
    while (*knob < KNOBS && !value_is(word.at, (size_t)(name_end - word.at), knob_info[*knob].name))
        *knob += 1;
    if (*knob == KNOBS)
        return policy_line_is_wrong(line, "no such knob");
    unsigned count = knob_info[*knob].count;
    if (bracket != NULL && (count == 1 || word.end[-1] != ']' || !value_number(bracket + 1, word.end - 1, count - 1, &index)))
        return count == 1 ? policy_line_is_wrong(line, "%s has no index", knob_info[*knob].name)
                          : policy_line_is_wrong(line, "%s needs an index from 0 to %u", knob_info[*knob].name, count - 1);
    *first = (unsigned)index;
    *end = bracket != NULL ? (unsigned)index + 1 : count;
    return true;
}

static bool read_knob(struct policy_line *line, bool apply)
{
    enum knob knob = KNOBS;
    unsigned index = 0;
    unsigned end = 0;
    uint64_t value;
    if (!find_knob(line, policy_next_word(line), &knob, &index, &end))
        return false;
    const struct knob_info *info = &knob_info[knob];
    struct policy_word word = policy_next_word(line);
    if (!value_number(word.at, word.end, info->most, &value) || value < info->least)
        return policy_line_is_wrong(line, "%s is %lu to %lu", info->name, info->least, info->most);
    for (; apply && index < end; index++)
        knob_set(knob, index, value);
    return true;
}

/* The user's value is in force. */
static bool knob_stays(struct policy_line line)
{
    enum knob knob;
    unsigned unused;
    return find_knob(&line, policy_next_word(&line), &knob, &unused, &unused) && knob_is_pinned(knob);
}

static void write_value(struct out *out, enum knob knob, unsigned index)
{
    uint64_t value = knob_get(knob, index);
    uint64_t usual = knob_of_mode(knob, index);
    if (value == usual || knob_is_pinned(knob))
        return;
    out_print(out, "knob %s", knob_info[knob].name);
    if (knob_info[knob].count > 1)
        out_print(out, "[%u]", index);
    out_print(out, " %lu # ", value);
    knob_text(out, knob, index);
    out_print(out, "; %lu in mode %s\n", usual, policy_mode_name());
}

/* What the mode says anyway is left out, and so are classes made at run time, whose ids mean something else in the next run. */
static void write_knobs(struct out *out)
{
    for (enum knob knob = 0; knob < KNOBS; knob++) {
        unsigned count = knob_info[knob].count == SIZE_CLASSES ? (unsigned)SIZE_CLASSES_FIXED : knob_info[knob].count;
        for (unsigned i = 0; i < count; i++)
            write_value(out, knob, i);
    }
}

const struct policy_section policy_sections[] = {
    {"knob", read_knob, write_knobs, knob_stays},
    {"class", class_lines_read, class_lines_write, class_lines_stay},
    {"site", site_lines_read, site_lines_write, NULL},
    {NULL, NULL, NULL, NULL},
};
