/* slab/slab.h: one slab of any class over real memory, against a model of which blocks are out and what they hold. */
#include "slab/slab.h"

#include <string.h>

#include "arena/arena.h"
#include "check.h"
#include "fake_os.h"
#include "fuzz.h"
#include "span/span.h"

enum { BLOCKS_MOST = SLAB_UNITS_MAX * (1 << UNIT_SHIFT) / 8, TAKE_MOST = 64 };

static struct {
    struct slab *slab;
    size_t size;  /* of a block */
    size_t bytes; /* of all memory */
    unsigned out;
    bool is_out[BLOCKS_MOST];
    uint8_t mark[BLOCKS_MOST]; /* in the first and the last byte of each that is out */
} model;

static uint8_t *block_at(size_t index)
{
    return (uint8_t *)model.slab->base + index * model.size;
}

static void take(struct input *input)
{
    void *slots[TAKE_MOST];
    unsigned want = (unsigned)input_below(input, TAKE_MOST + 1);
    unsigned got = slab_take(model.slab, slots + TAKE_MOST - 1, want);
    unsigned left = model.slab->blocks - model.out;
    size_t last = 0;
    CHECK(got == (want < left ? want : left));
    for (unsigned i = 0; i < got; i++) {
        size_t offset = (size_t)((char *)slots[TAKE_MOST - 1 - i] - model.slab->base);
        size_t index = offset / model.size;
        CHECK(offset % model.size == 0 && index < model.slab->blocks && !model.is_out[index]);
        CHECK(i == 0 || index > last);
        last = index;
        model.is_out[index] = true;
        model.mark[index] = (uint8_t)(index + want);
        block_at(index)[0] = block_at(index)[model.size - 1] = model.mark[index];
    }
    model.out += got;
}

static void check_marks(void)
{
    for (size_t i = 0; i < model.slab->blocks; i++)
        if (model.is_out[i])
            CHECK(block_at(i)[0] == model.mark[i] && block_at(i)[model.size - 1] == model.mark[i]);
}

/* A block, out or not, or any address of the slab's memory. */
static void put(struct input *input)
{
    uint8_t kind = input_byte(input);
    size_t offset = kind % 4 == 0 ? input_below(input, model.bytes) : input_below(input, model.slab->blocks) * model.size;
    size_t index = offset / model.size;
    char *at = model.slab->base + offset;
    bool is_block = offset % model.size == 0 && index < model.slab->blocks;
    CHECK(slab_holds(model.slab, at) == is_block);
    enum slab_verdict wanted = !is_block ? SLAB_NOT_A_BLOCK : model.is_out[index] ? SLAB_FINE : SLAB_DOUBLE_FREE;
    CHECK(slab_put(model.slab, at) == wanted);
    if (wanted != SLAB_FINE)
        return;
    if (kind % 8 == 1) {
        slab_unput(model.slab, at);
    } else {
        model.is_out[index] = false;
        model.out--;
    }
}

/* No page that goes back holds a part of a block that is out. */
static void purge(struct input *input)
{
    if (input_byte(input) % 4 == 0)
        fake_os_refuse(FAKE_PURGE, 1 + input_below(input, 4), 1);
    size_t before = slab_absent_bytes(model.slab);
    size_t bytes = slab_purge_holes(model.slab);
    CHECK(slab_absent_bytes(model.slab) == before + bytes);
    CHECK(before + bytes + model.out * model.size <= model.bytes);
    if (fake_os_refused() == 0) {
        CHECK(model.out > 0 || before + bytes == model.bytes);
        CHECK(slab_purge_holes(model.slab) == 0);
    }
    fake_os_refuse(0, 1, 0);
    check_marks();
}

static void make(unsigned class)
{
    bool zero;
    char *base = span_take(size_classes[class].units, 1, &zero);
    CHECK(base != NULL);
    memset(&model, 0, sizeof model);
    model.slab = slab_make(class, base);
    CHECK(model.slab != NULL);
    model.size = size_classes[class].size;
    model.bytes = size_classes[class].units * UNIT_SIZE;
    CHECK(model.slab->blocks == model.bytes / model.size && model.slab->blocks <= BLOCKS_MOST);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    size_class_init();
    CHECK(arena_init());
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    make((unsigned)input_below(&input, SIZE_CLASSES_FIXED));
    while (input_has_more(&input)) {
        uint8_t kind = input_byte(&input) % 8;
        if (kind < 3)
            take(&input);
        else if (kind < 7)
            put(&input);
        else
            purge(&input);
        CHECK(model.slab->free == model.slab->blocks - model.out);
    }
    check_marks();
    char *base = model.slab->base;
    slab_discard(model.slab);
    span_give(base, model.bytes >> UNIT_SHIFT, true);
    return 0;
}
