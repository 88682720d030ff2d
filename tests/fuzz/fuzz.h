/*
 * What the fuzzers share. Each interprets the bytes of an input as operations on one component, and judges what that does by
 * a model of its own; a CHECK that fails is a finding (docs/fuzzing.md).
 *
 * The process goes on with the next input: each gives back what it has taken.
 */
#ifndef HAK_TEST_FUZZ_H
#define HAK_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are read one after another. Past the end everything is 0. */
struct input {
    const uint8_t *at;
    const uint8_t *end;
};

bool input_has_more(const struct input *input);
uint8_t input_byte(struct input *input);

/* A number of so many bytes, at most 8; the lowest comes first. */
uint64_t input_number(struct input *input, unsigned bytes);

/* A number in [0, limit), of as many bytes as that needs; limit > 0. */
size_t input_below(struct input *input, size_t limit);

/* A text of at most `most` bytes, to be freed with free(): the next byte says how many. Nothing lies behind its zero. */
char *input_text(struct input *input, size_t most);

/* libFuzzer's names. A fuzzer defines the second if it has to prepare something. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *count, char ***arguments);

#endif
