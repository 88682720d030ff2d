/* Values as options write them: all of [text, end), which need not be followed by a zero. False: that is none. */
#ifndef HAK_CONFIG_VALUES_H
#define HAK_CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is it this word? */
bool value_is(const char *value, size_t length, const char *word);

/* A decimal number up to `most`. */
bool value_number(const char *text, const char *end, size_t most, size_t *out);

/* Digits and at most one of K, M, G, T. */
bool value_bytes(const char *text, const char *end, size_t *out);

/* An address: 0x and up to 16 lower-case digits. */
bool value_hex(const char *text, const char *end, uintptr_t *out);

#endif
