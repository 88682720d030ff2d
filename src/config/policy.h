/* The values that steer the allocator. They are read only behind the door, may change at any time, and
 * each reader copies what it needs; none of them can make an operation wrong, only faster or smaller. */
#ifndef HAK_CONFIG_POLICY_H
#define HAK_CONFIG_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "config/size_class.h"

/* Where the kernel may use huge pages. */
enum huge_pages {
    HUGE_AUTO, /* in large blocks that grow, and where superslabs have settled (span/huge.h) */
    HUGE_ON,   /* everywhere */
    HUGE_OFF,
};

/* What check mode looks at, besides each free. */
enum check {
    CHECK_FREE = 1 << 0, /* this one is always there */
    CHECK_REDZONE = 1 << 1,
    CHECK_POISON = 1 << 2,
    CHECK_QUARANTINE = 1 << 3,
    CHECK_LEAKS = 1 << 4,
    CHECK_STACKS = 1 << 5,
    CHECK_ALL = (1 << 6) - 1,
};

/* When statistics are written (api/watch.h). */
enum stats_when {
    STATS_NEVER,
    STATS_AT_EXIT,   /* to where reports go */
    STATS_BY_SIGNAL, /* the same */
    STATS_SERIES,    /* to a file, at heartbeats, once a second at most, and at the end */
};

/* What is written of each operation (check/trace.h). */
enum trace {
    TRACE_NOTHING,
    TRACE_ADDRESS, /* of the block at this address */
    TRACE_OFFSET,  /* of that so many bytes into the heap's range, whose place differs in each run */
    TRACE_CLASS,   /* of blocks of the size class that serves so many bytes */
    TRACE_ROUTE,   /* of so many visits to the door: which way they went (api/route_trace.h) */
};

enum { TRACE_ROUTES_USUAL = 1000 };

/* Which table of values is in force. Tools outside know this order. */
enum mode { MODE_MINIMAL, MODE_FAST, MODE_BALANCED, MODE_LEARNING, MODE_RESEARCH, MODES };

/* What the learner does (learn/). */
enum learn {
    LEARN_OFF,
    LEARN_OBSERVE, /* says what it would do, and does nothing */
    LEARN_ON,
};

/* Each of its parts can be left out. */
enum learn_part {
    LEARN_BIGCACHE = 1 << 0,
    LEARN_SITES = 1 << 1,
    LEARN_CLASSES = 1 << 2,
    LEARN_ELO = 1 << 3,
    LEARN_EVOLUTION = 1 << 4,
    LEARN_ALL = (1 << 5) - 1,
};

struct policy {
    /* These are knobs (knobs.h), which may change while others run: read with load_relaxed. */
    size_t magazine_bytes[SIZE_CLASSES]; /* most that one magazine of the class may hold */
    size_t batch_eighths[SIZE_CLASSES];  /* so much of a magazine is filled by a refill and given back by a flush */
    size_t thread_cache_bytes;           /* most that all magazines of a thread may hold */
    size_t bigcache_bytes;               /* most that freed large blocks may hold */
    size_t bigcache_ms[SIZE_BINS];       /* how long a freed large block is kept */
    size_t kept_most_bytes;              /* a larger one is not */
    size_t purge_ms;                     /* how long free units keep their pages */
    size_t purge_doublings;              /* how often that may double (span/decay.h) */
    size_t huge_fill;                    /* percent of a huge page that is in memory before its superslabs become one (span/huge.h) */

    /* So may these. */
    enum learn learn;
    unsigned learn_parts;      /* of enum learn_part */
    uint32_t memory_price;     /* what the learner takes a MiB held for a second to cost, in ns of a thread's time */
    bool learn_is_pinned;      /* the user has said what the learner does: a mode leaves it alone */
    size_t fit_bytes;          /* in slabs of one heap: then classes are fitted though nothing learns (learn/fit.h); SIZE_MAX: never */

    enum huge_pages huge;
    bool purger;               /* may the purger run as a thread? */
    size_t guard_bytes;        /* requested, between two guarded samples; 0: none */
    uint32_t guard_slots;      /* guarded blocks, live and freed, at once */
    bool crash_reports;        /* is what kills the process reported? */
    unsigned checks;           /* of enum check; 0: check mode is off */
    enum trace trace;
    uintptr_t traced;          /* the address, inverted (leaks: here it leads to no block), the bytes, or how many */
    enum stats_when stats;     /* when are statistics written? */
    int stats_signal;          /* its number */
    size_t profile_bytes;      /* requested, on average, between two samples of the heap profiler; 0: none, 1: all */
    const char *profile_path;  /* where the profile is written at exit, %p in it being the process's number; NULL: nowhere */
    size_t heartbeat_bytes;    /* bytes requested by a thread between two heartbeats, at least (heap/budget.h) */
    size_t soft_limit;         /* bytes held, SIZE_MAX: none; 0: not known yet, by the control group's */
    size_t hard_limit;         /* bytes held, SIZE_MAX or 0: none */
};

/* The values in force. */
extern HIDDEN struct policy policy;

/* Makes the values of the mode called `name` those in force. False: no such mode, nothing changed. At the start of the process. */
bool policy_set_mode(const char *name);

/* The same in a process that runs, by any thread: what only takes effect at the start (guards, the trace) stays as it is. What was
 * learned is replaced by the mode's values. */
bool policy_switch_mode(const char *name);

/* Makes the values of the mode in force those in force once more. Any thread. */
void policy_restore(void);

/* What the learner does, from "off", "observe" or "on", the last two perhaps followed by a colon and its parts. False: no such. */
bool policy_set_learn(const char *value);

/* The first of these words. */
const char *policy_learn_name(void);

/* The mode in force, the values that it says, and its name. */
extern HIDDEN uint32_t policy_mode; /* enum mode */
extern HIDDEN uint32_t policy_switches; /* how often one was set, the same again too */
const struct policy *policy_of_mode(void);
const char *policy_mode_name(void);

/* The names of all modes, for messages. */
#define POLICY_MODES "minimal, fast, balanced, learning, research"
#define POLICY_LEARN "off, observe, on, or one of the last two, a colon and some of bigcache, sites, classes, elo, evolution with commas between"

#endif
