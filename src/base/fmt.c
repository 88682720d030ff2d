#include "base/fmt.h"

#include <stdbool.h>
#include <stdint.h>

struct sink {
    char *at;
    char *end; /* place of the ending zero */
};

static void put_char(struct sink *sink, char c)
{
    if (sink->at < sink->end)
        *sink->at++ = c;
}

static void put_text(struct sink *sink, const char *text)
{
    if (text == NULL)
        text = "(null)";
    while (*text != '\0')
        put_char(sink, *text++);
}

static void put_number(struct sink *sink, uint64_t value, unsigned base)
{
    char digits[20];
    unsigned n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    while (n > 0)
        put_char(sink, digits[--n]);
}

static void put_signed(struct sink *sink, int64_t value)
{
    if (value < 0)
        put_char(sink, '-');
    put_number(sink, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
}

/* One conversion, at the character after the '%'. Returns the character after the conversion. */
static const char *put_conversion(struct sink *sink, const char *f, va_list *args)
{
    bool wide = *f == 'l' || *f == 'z';
    f += wide;
    switch (*f) {
    case 's':
        put_text(sink, va_arg(*args, const char *));
        break;
    case 'c':
        put_char(sink, (char)va_arg(*args, int));
        break;
    case 'd':
        put_signed(sink, wide ? va_arg(*args, long) : va_arg(*args, int));
        break;
    case 'u':
        put_number(sink, wide ? va_arg(*args, unsigned long) : va_arg(*args, unsigned), 10);
        break;
    case 'x':
        put_number(sink, wide ? va_arg(*args, unsigned long) : va_arg(*args, unsigned), 16);
        break;
    case 'p':
        put_text(sink, "0x");
        put_number(sink, (uintptr_t)va_arg(*args, void *), 16);
        break;
    case '\0':
        break;
    default:
        put_char(sink, *f);
        break;
    }
    return *f == '\0' ? f : f + 1;
}

size_t fmt_vprint(char *buffer, size_t capacity, const char *format, va_list args)
{
    struct sink sink = {buffer, buffer + capacity - 1};
    va_list copy;
    va_copy(copy, args);
    for (const char *f = format; *f != '\0';) {
        if (*f != '%')
            put_char(&sink, *f++);
        else
            f = put_conversion(&sink, f + 1, &copy);
    }
    va_end(copy);
    *sink.at = '\0';
    return (size_t)(sink.at - buffer);
}

size_t fmt_print(char *buffer, size_t capacity, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t length = fmt_vprint(buffer, capacity, format, args);
    va_end(args);
    return length;
}
