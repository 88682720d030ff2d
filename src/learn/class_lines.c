#include "learn/class_lines.h"

#include "config/size_class.h"
#include "config/values.h"
#include "learn/fit.h"

enum { SIZE_STEP = 16 };

bool class_lines_read(struct policy_line *line, bool apply)
{
    uint64_t size;
    uint64_t refills;
    if (!policy_next_number(line, "class", SMALL_MAX, &size))
        return false;
    if (size == 0 || size % SIZE_STEP != 0)
        return policy_line_is_wrong(line, "a class has a multiple of %u bytes", SIZE_STEP);
    struct policy_word evidence = policy_next_word(line);
    if (!value_is(evidence.at, (size_t)(evidence.end - evidence.at), "evidence"))
        return policy_line_is_wrong(line, "behind a class comes evidence");
    if (!policy_next_number(line, "evidence", UINT64_MAX, &refills))
        return false;
    /* Where there is such a class already, or no more room for one, the program does without. */
    if (apply)
        (void)fit_preset(size, refills);
    return true;
}

bool class_lines_stay(struct policy_line line)
{
    (void)line;
    return HARDENED;
}

static void write_class(size_t size, uint64_t evidence, void *out)
{
    out_print(out, "class %zu evidence %lu # refills\n", size, evidence);
}

void class_lines_write(struct out *out)
{
    fit_each(write_class, out);
}
