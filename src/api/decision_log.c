#include "api/decision_log.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/fail.h"
#include "learn/decision_text.h"

enum { LINE_MOST = 300 };

static void write_line(const struct decision *decision)
{
    char text[LINE_MOST];
    struct out out;
    out_to_memory(&out, text, sizeof text - 1);
    decision_text(&out, decision);
    text[out.length] = '\0';
    note("hakmem: learner: %lu ms: %s", decision->ms, text);
}

/* Of threads that come at once each writes other decisions. */
void decision_log(void)
{
    static uint64_t written;
    uint64_t next = load_relaxed(&written);
    while (next < decisions_noted()) {
        struct decision decision;
        if (!__atomic_compare_exchange_n(&written, &next, next + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        if (decision_get(next, &decision))
            write_line(&decision);
        next++;
    }
}
