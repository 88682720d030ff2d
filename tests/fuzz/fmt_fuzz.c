/* base/fmt.h: any value by each conversion, into a buffer of any size, as snprintf does it. */
#include "base/fmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fuzz.h"

enum { TEXT_MOST = 200, BUFFER = 256 };

/* Nothing is written behind the capacity, which a sanitizer sees. */
#define COMPARE(...)                                                                  \
    do {                                                                              \
        char wanted[BUFFER];                                                          \
        snprintf(wanted, capacity, __VA_ARGS__);                                      \
        CHECK(fmt_print(found, capacity, __VA_ARGS__) == strlen(wanted));             \
        CHECK(memcmp(found, wanted, strlen(wanted) + 1) == 0);                        \
    } while (0)

static void compare(struct input *input)
{
    size_t capacity = 1 + input_below(input, BUFFER);
    char *found = malloc(capacity);
    CHECK(found != NULL);
    uint8_t kind = input_byte(input);
    char *text = input_text(input, TEXT_MOST);
    uint64_t value = input_number(input, 8);
    switch (kind % 9) {
    case 0:
        COMPARE("<%s>%s", text, text);
        break;
    case 1:
        COMPARE("%c%%", (char)(value % 127 + 1));
        break;
    case 2:
        COMPARE("%d, %d", (int)value, -(int)(value >> 33));
        break;
    case 3:
        COMPARE("%u", (unsigned)value);
        break;
    case 4:
        COMPARE("%ld: %s", (long)value, text);
        break;
    case 5:
        COMPARE("%lu", (unsigned long)value);
        break;
    case 6:
        COMPARE("%s%zu", text, (size_t)value);
        break;
    case 7:
        COMPARE("%x %lx", (unsigned)value, (unsigned long)value);
        break;
    default:
        COMPARE("%p", (void *)(uintptr_t)(value | 1));
    }
    free(text);
    free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    while (input_has_more(&input))
        compare(&input);
    return 0;
}
