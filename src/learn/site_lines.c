#include "learn/site_lines.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "config/values.h"
#include "learn/sites.h"

#define KEEP_MOST ((uint64_t)1 << PATIENCE_MOST)

bool site_lines_read(struct policy_line *line, bool apply)
{
    uintptr_t word;
    uint64_t times;
    struct policy_word name = policy_next_word(line);
    if (!value_hex(name.at, name.end, &word) || word == 0)
        return policy_line_is_wrong(line, "a site is 0x and up to 16 hexadecimal digits");
    struct policy_word keep = policy_next_word(line);
    if (!value_is(keep.at, (size_t)(keep.end - keep.at), "keep"))
        return policy_line_is_wrong(line, "behind a site comes keep");
    if (!policy_next_number(line, "keep", KEEP_MOST, &times))
        return false;
    if (times != 0 && !is_power_of_two(times))
        return policy_line_is_wrong(line, "keep is 0, 1, 2, 4 or %lu", KEEP_MOST);
    if (apply)
        sites_preset(word, times != 0 ? log2_floor(times) : PATIENCE_NONE);
    return true;
}

static void write_site(uint32_t number, const struct large_site *site, void *out)
{
    (void)number;
    uint32_t patience = load_relaxed(&site->patience);
    if (patience == 0)
        return;
    unsigned times = patience == PATIENCE_NONE ? 0 : 1u << patience;
    out_print(out, "site 0x%lx keep %u # times as long as others; %lu requests of %zu KiB on average\n", site->word, times,
              load_relaxed(&site->requests), site_mean_bytes(site) / KIB);
}

void site_lines_write(struct out *out)
{
    sites_each(write_site, out);
}
