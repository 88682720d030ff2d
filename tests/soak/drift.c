#include "drift.h"

#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS_MOST = 1 << 18, ROUNDS_LEAST = 60 };

/* In KiB. Of a longer run, every second round is left out, and so on. */
static uint32_t left[ROUNDS_MOST];
static uint32_t sorted[ROUNDS_MOST / 3 + 1];
static size_t count;
static size_t every = 1;
static size_t rounds;

static void halve(void)
{
    for (size_t i = 0; i < ROUNDS_MOST / 2; i++) {
        left[i] = left[2 * i];
    }
    count = ROUNDS_MOST / 2;
    every *= 2;
}

void drift_note(size_t bytes)
{
    if (count == ROUNDS_MOST) {
        halve();
    }
    if (rounds++ % every == 0) {
        left[count++] = (uint32_t)(bytes >> 10);
    }
}

static int compare(const void *a, const void *b)
{
    const uint32_t first = *(const uint32_t *)a;
    const uint32_t second = *(const uint32_t *)b;
    return (first > second) - (first < second);
}

static size_t median(const uint32_t *values, size_t values_count)
{
    for (size_t i = 0; i < values_count; i++) {
        sorted[i] = values[i];
    }
    qsort(sorted, values_count, sizeof sorted[0], compare);
    return (size_t)sorted[values_count / 2] << 10;
}

bool drift_between(struct drift *drift)
{
    const size_t third = count / 3;
    if (count < ROUNDS_LEAST) {
        return false;
    }
    *drift = (struct drift){median(left, third), median(left + count - third, third)};
    return true;
}
