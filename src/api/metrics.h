/*
 * What is counted, and where it stands: rows (metrics_table.h) from which the statistics are written here, and read by tools
 * outside (heap/control.h). Words may be a moment old; each is read whole.
 */
#ifndef HAK_API_METRICS_H
#define HAK_API_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "heap/heap.h"

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER };

/* Where `at` leads. */
enum metric_scope {
    METRIC_GLOBAL,      /* an offset in one of metric_bases */
    METRIC_HEAP,        /* an offset in each heap */
    METRIC_HEAP_CLASS,  /* the same; word i is of class i */
    METRIC_COUNT,       /* an offset in each heap's counts */
    METRIC_COUNT_CLASS, /* the same; word i is of class i */
};

enum metric_group { METRIC_MEMORY, METRIC_COUNTERS, METRIC_OS, METRIC_PROFILE, METRIC_LOCKS, METRIC_LEARNER };

/* The sum of `count` words at `at`, `at` + stride, ..., times `scale`; of a class, one of the words. */
struct metric {
    uintptr_t at;
    uint64_t scale;
    uint32_t stride;   /* bytes */
    uint32_t count;
    uint8_t kind;      /* enum metric_kind */
    uint8_t scope;     /* enum metric_scope */
    uint8_t width;     /* bytes of a word: 4 or 8 */
    uint8_t group;     /* enum metric_group */
    uint8_t base;      /* which of metric_bases */
};

enum { METRIC_NAME = 24, METRIC_ABOUT = 96 };

/* The characters themselves: the loader would have to relocate a pointer to them in every process. */
struct metric_text {
    char name[METRIC_NAME];
    char about[METRIC_ABOUT]; /* for users: what it says */
};

extern HIDDEN const struct metric metrics[];
extern HIDDEN const struct metric_text metric_texts[]; /* text i is of metric i */
extern HIDDEN const size_t metric_count;
extern HIDDEN const void *const metric_bases[];
extern HIDDEN const size_t metric_base_count;

/* Of scopes METRIC_GLOBAL (heap: NULL), METRIC_HEAP and METRIC_COUNT. */
uint64_t metric_value(const struct metric *metric, const struct heap *heap);

/* Of the other two. */
uint64_t metric_of_class(const struct metric *metric, const struct heap *heap, unsigned class);

/* Of the process: of all heaps and classes in sum. */
uint64_t metric_sum(const struct metric *metric);

#endif
