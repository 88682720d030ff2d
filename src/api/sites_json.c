#include "api/sites_json.h"

#include "learn/sites.h"

static void times(struct out *out, const char *name, const uint32_t counts[SITE_TIMES])
{
    out_print(out, ",\"%s\":[", name);
    for (unsigned time = 0; time < SITE_TIMES; time++)
        out_print(out, time == 0 ? "%u" : ",%u", load_relaxed(&counts[time]));
    out_print(out, "]");
}

struct rows {
    struct out *out;
    const char *before;
};

static void row(uint32_t number, const struct large_site *site, void *data)
{
    struct rows *rows = data;
    (void)number;
    out_print(rows->out, "%s{\"site\":\"0x%lx\",\"requests\":%lu,\"bytes\":%lu,\"least\":%zu,\"most\":%zu", rows->before,
              load_relaxed(&site->word), load_relaxed(&site->requests), load_relaxed(&site->bytes), load_relaxed(&site->least),
              load_relaxed(&site->most));
    out_print(rows->out, ",\"frees\":%lu,\"remote_frees\":%lu", load_relaxed(&site->frees), load_relaxed(&site->remote_frees));
    times(rows->out, "lifetimes", site->lifetimes);
    times(rows->out, "waits", site->waits);
    uint32_t patience = load_relaxed(&site->patience);
    out_print(rows->out, ",\"unwanted\":%u,\"keep\":%u}", load_relaxed(&site->unwanted),
              patience == PATIENCE_NONE ? 0 : 1u << patience);
    rows->before = ",";
}

void sites_json(struct out *out)
{
    if (load_acquire(&large_sites) == NULL)
        return;
    struct rows rows = {out, ""};
    out_print(out, ",\"sites\":[");
    sites_each(row, &rows);
    out_print(out, "]");
}
