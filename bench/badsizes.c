/*
 * badsizes KIND COUNT SEED [--live BYTES]
 *
 * A live set of blocks of a few favourite sizes, as programs have that allocate the same structures again and again. It grows
 * to --live bytes (default 64 MiB); then COUNT times one of its blocks is freed and another allocated. Each size has the same
 * share of the bytes. KIND says where the sizes fall between the steps at which allocators round up:
 *
 *   bad     just above one: 136, 264, 528, 1040, 2064 bytes
 *   good    on one: 128, 256, 512, 1024, 2048 bytes
 *   spread  from 128 to 2048 bytes, each doubling as likely as any other
 *
 * Every byte is written. An operation is a malloc or a free.
 */
#include "workload.h"

enum { FAVOURITES = 5, LEAST = 128, MOST = 2048 };

struct kind {
    const char *name;
    size_t size[FAVOURITES]; /* 0: none */
};

static const struct kind kinds[] = {
    {"bad", {136, 264, 528, 1040, 2064}},
    {"good", {128, 256, 512, 1024, 2048}},
    {"spread", {0}},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(name, kinds[i].name) == 0)
            return &kinds[i];
    return NULL;
}

struct set {
    const struct kind *kind;
    uint64_t random;
    struct block *block;
    uint64_t blocks;
    uint64_t most; /* blocks there is room for */
};

/* Of n favourites the i-th is drawn as often as its size is small. */
static size_t next_size(struct set *set)
{
    double inverse = 0;
    if (set->kind->size[0] == 0)
        return workload_size(random_next(&set->random), LEAST, MOST);
    for (int i = 0; i < FAVOURITES; i++)
        inverse += 1.0 / (double)set->kind->size[i];
    double drawn = (double)(random_next(&set->random) >> 11) / 0x1p53 * inverse;
    int i = 0;
    while (i < FAVOURITES - 1 && (drawn -= 1.0 / (double)set->kind->size[i]) > 0)
        i++;
    return set->kind->size[i];
}

static struct block take(struct set *set)
{
    struct block block = block_take(next_size(set));
    memset(block.data + 1, 1, block.size - 2);
    return block;
}

static void grow(struct set *set, uint64_t live)
{
    for (uint64_t bytes = 0; bytes < live && set->blocks < set->most; set->blocks++) {
        set->block[set->blocks] = take(set);
        bytes += set->block[set->blocks].size;
    }
}

static void replace(struct set *set, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct block *block = &set->block[random_below(random_next(&set->random), set->blocks)];
        block_drop(*block);
        *block = take(set);
    }
}

int main(int count, char **words)
{
    uint64_t live = 64 << 20;
    const struct workload_option options[] = {{"--live", &live, 1 << 20, (uint64_t)1 << 36}};
    const struct kind *kind = count >= 4 ? find_kind(words[1]) : NULL;
    if (kind == NULL || !workload_options(count, words, 4, options, 1)) {
        fputs("usage: badsizes bad|good|spread COUNT SEED [--live BYTES]\n", stderr);
        return 2;
    }
    uint64_t replaced = args_number("COUNT", words[2], 0, (uint64_t)1 << 40);
    uint64_t seed = args_number("SEED", words[3], 1, UINT64_MAX / 2);
    struct set set = {.kind = kind, .random = workload_seed(seed, 0), .most = live / LEAST + 1};
    set.block = workload_table(set.most * sizeof *set.block);
    double began = timing_seconds();
    grow(&set, live);
    replace(&set, replaced);
    double seconds = timing_seconds() - began;
    workload_throughput(set.blocks + 2 * replaced, seconds);
    for (uint64_t i = 0; i < set.blocks; i++)
        block_drop(set.block[i]);
    return 0;
}
