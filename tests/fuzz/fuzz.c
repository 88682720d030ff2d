#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

bool input_has_more(const struct input *input)
{
    return input->at < input->end;
}

uint8_t input_byte(struct input *input)
{
    return input_has_more(input) ? *input->at++ : 0;
}

uint64_t input_number(struct input *input, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)input_byte(input) << 8 * i;
    return value;
}

size_t input_below(struct input *input, size_t limit)
{
    unsigned bytes = 1;
    while (bytes < sizeof limit && (limit - 1) >> (8 * bytes) != 0)
        bytes++;
    return input_number(input, bytes) % limit;
}

char *input_text(struct input *input, size_t most)
{
    size_t length = input_below(input, most + 1);
    size_t left = (size_t)(input->end - input->at);
    if (length > left)
        length = left;
    char *text = malloc(length + 1);
    CHECK(text != NULL);
    memcpy(text, input->at, length);
    text[length] = '\0';
    input->at += length;
    return text;
}
