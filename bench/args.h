/* Numbers from the command line: a bad one gets one line and exit code 2. */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t args_number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < least || value > most) {
        fprintf(stderr, "%s=%s: legal values are %llu to %llu\n", name, text, (unsigned long long)least,
                (unsigned long long)most);
        exit(2);
    }
    return value;
}

#endif
