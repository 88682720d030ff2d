#include "config/values.h"

#include <string.h>

bool value_is(const char *value, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(value, word, length) == 0;
}

bool value_number(const char *text, const char *end, size_t most, size_t *out)
{
    size_t value = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        size_t digit = (size_t)(*text - '0');
        if (digit > most || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool value_bytes(const char *text, const char *end, size_t *out)
{
    static const char suffixes[] = "KMGT";
    const char *suffix = end > text ? strchr(suffixes, end[-1]) : NULL;
    unsigned shift = suffix != NULL ? (unsigned)(suffix - suffixes + 1) * 10 : 0;
    if (!value_number(text, suffix != NULL ? end - 1 : end, SIZE_MAX >> shift, out))
        return false;
    *out <<= shift;
    return true;
}

bool value_hex(const char *text, const char *end, uintptr_t *out)
{
    static const char digits[] = "0123456789abcdef";
    uintptr_t value = 0;
    if (end - text < 3 || end - text > 2 + 16 || text[0] != '0' || text[1] != 'x')
        return false;
    for (text += 2; text < end; text++) {
        const char *digit = memchr(digits, *text, sizeof digits - 1);
        if (digit == NULL)
            return false;
        value = value << 4 | (uintptr_t)(digit - digits);
    }
    *out = value;
    return true;
}
