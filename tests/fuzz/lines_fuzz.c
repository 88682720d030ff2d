/* os/lines.h: files whose lines are of any length. */
#include "os/lines.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "fuzz.h"

enum { FILE_MOST = 1 << 16, PIECE_MOST = 5000, PATH_MOST = 64 };

static char content[FILE_MOST];
static struct lines lines;

/* Pieces: so many of one byte, and perhaps a newline. */
static size_t make_content(struct input *input)
{
    size_t length = 0;
    while (input_has_more(input)) {
        uint8_t kind = input_byte(input);
        size_t piece = kind % 8 == 0 ? input_below(input, PIECE_MOST) : kind / 8 % 8;
        if (length + piece + 1 > sizeof content)
            break;
        memset(content + length, 'a' + kind / 64, piece);
        length += piece;
        if (kind % 2 == 0)
            content[length++] = '\n';
    }
    return length;
}

/* Lines that fit with their newline, one after another; what has none at the end of the file is no line. */
static void check_lines(const char *path, size_t length)
{
    const char *at = content;
    const char *end;
    CHECK(lines_open(&lines, path));
    for (; (end = memchr(at, '\n', length - (size_t)(at - content))) != NULL; at = end + 1) {
        size_t bytes = (size_t)(end - at);
        if (bytes >= LINES_TEXT_MOST)
            continue;
        const char *line = lines_next(&lines);
        CHECK(line != NULL && strlen(line) == bytes && memcmp(line, at, bytes) == 0);
    }
    CHECK(lines_next(&lines) == NULL);
    lines_close(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    char path[PATH_MOST];
    size_t length = make_content(&input);
    int file = memfd_create("lines", 0);
    CHECK(file >= 0 && write(file, content, length) == (ssize_t)length);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    check_lines(path, length);
    close(file);
    return 0;
}
