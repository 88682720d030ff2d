/* heap/seal.h: the hardened library, of which each block has the very size that was asked for, reads as zero when it is new, and
 * is verified when it is freed. */
#include <string.h>

#include "base/zero.h"
#include "blocks.h"
#include "check.h"
#include "config/size_class.h"
#include "hakmem.h"

enum { HELD = 16 };

/* Content comes and goes, so that memory is used again that was not zero. */
static void come_and_go(struct blocks *blocks, struct shadow **held, struct input *input)
{
    char *block[HELD];
    size_t size = input_below(input, 2 * SMALL_MAX);
    size_t count = 1 + input_below(input, HELD);
    (void)blocks;
    (void)held;
    for (size_t i = 0; i < count; i++) {
        block[i] = hak_malloc(size);
        CHECK(block[i] != NULL && hak_malloc_usable_size(block[i]) == size && is_zero(block[i], size));
        memset(block[i], 'x', size);
    }
    for (size_t i = 0; i < count; i++)
        hak_free_sized(block[i], size);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    blocks_start();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    blocks_play_alone(data, size, come_and_go);
    (void)hak_purge(HAK_PURGE_CACHED);
    return 0;
}
