/* arena/meta.h: pieces of all sizes that are kept for reuse, against a model of what is whose; the system may refuse more. */
#include "arena/meta.h"

#include <stdint.h>
#include <string.h>

#include "check.h"
#include "fake_os.h"
#include "fuzz.h"

/* Larger pieces never come back. */
enum { PIECES = 48, BYTES_MOST = 4608, ALIGN = 64 };

static struct piece {
    unsigned char *at; /* NULL: none */
    size_t bytes;
    unsigned char fill;
} pieces[PIECES];

static void check_fill(const struct piece *piece, unsigned char fill)
{
    CHECK(piece->at[0] == fill && memcmp(piece->at, piece->at + 1, piece->bytes - 1) == 0);
}

static void take(struct piece *piece, struct input *input)
{
    uint8_t refused = input_byte(input);
    if (refused % 8 == 0)
        fake_os_refuse(FAKE_RESERVE | FAKE_COMMIT, 1, FAKE_EVERY);
    piece->bytes = 1 + input_below(input, BYTES_MOST);
    piece->at = meta_alloc(piece->bytes);
    fake_os_obey();
    if (piece->at == NULL) {
        CHECK(refused % 8 == 0);
        return;
    }
    CHECK((uintptr_t)piece->at % ALIGN == 0);
    check_fill(piece, 0);
    piece->fill = (unsigned char)(refused | 1);
    memset(piece->at, piece->fill, piece->bytes);
}

static void give(struct piece *piece)
{
    check_fill(piece, piece->fill);
    meta_free(piece->at, piece->bytes);
    piece->at = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    while (input_has_more(&input)) {
        struct piece *piece = &pieces[input_below(&input, PIECES)];
        if (piece->at == NULL)
            take(piece, &input);
        else
            give(piece);
    }
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].at != NULL)
            give(&pieces[i]);
    return 0;
}
