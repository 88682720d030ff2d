/* Numbers from the command line: a bad one gets one line that says what is legal, and exit code 2. */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* `also` names legal values that are not numbers (the caller knows them), " or mixed" say. */
static inline uint64_t args_number_or(const char *name, const char *text, uint64_t least, uint64_t most,
                                      const char *also)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    int is_digit = *text >= '0' && *text <= '9'; /* strtoull would take blanks and signs */
    if (!is_digit || errno != 0 || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "%s: %s=%s: legal values are %llu to %llu%s\n", program_invocation_short_name, name, text,
                (unsigned long long)least, (unsigned long long)most, also);
        exit(2);
    }
    return value;
}

static inline uint64_t args_number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    return args_number_or(name, text, least, most, "");
}

#endif
