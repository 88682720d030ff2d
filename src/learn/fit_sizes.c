#include "learn/fit_sizes.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "base/shard.h"

/* Once so many refills between two fixed classes are known, their sum is halved: the latest have half of the weight. */
enum { REFILLS_MOST = 4096 };

static struct fit_sizes *shards[SHARDS];

static struct fit_sizes *own_shard(void)
{
    struct fit_sizes **shard = &shards[shard_of_thread()];
    struct fit_sizes *sizes = load_acquire(shard);
    if (LIKELY(sizes != NULL))
        return sizes;
    struct fit_sizes *made = meta_alloc(sizeof *made);
    if (made == NULL || __atomic_compare_exchange_n(shard, &sizes, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    meta_free(made, sizeof *made);
    return sizes;
}

void fit_sizes_note(size_t size, size_t blocks)
{
    if (size <= SIZE_CLASS_FITS)
        return;
    struct fit_sizes *sizes = own_shard();
    if (sizes == NULL)
        return;
    (void)add_relaxed(&sizes->blocks[fit_step(size)], (uint32_t)blocks);
    (void)add_relaxed(&sizes->refills[size_class_fixed(size)], 1u);
}

static void collect(uint32_t *to, uint32_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (load_relaxed(&from[i]) != 0)
            to[i] += __atomic_exchange_n(&from[i], 0, __ATOMIC_RELAXED);
}

static void halve(struct fit_sizes *sum, unsigned fixed)
{
    size_t end = fit_step(size_classes[fixed].size);
    sum->refills[fixed] /= 2;
    for (size_t step = fit_step(size_classes[fixed - 1].size) + 1; step <= end; step++)
        sum->blocks[step] /= 2;
}

void fit_sizes_collect(struct fit_sizes *sum)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        struct fit_sizes *sizes = load_acquire(&shards[i]);
        if (sizes == NULL)
            continue;
        collect(sum->blocks, sizes->blocks, FIT_STEPS);
        collect(sum->refills, sizes->refills, SIZE_CLASSES_FIXED);
    }
    for (unsigned fixed = size_class_fixed(SIZE_CLASS_FITS) + 1; fixed < SIZE_CLASSES_FIXED; fixed++)
        while (sum->refills[fixed] > REFILLS_MOST)
            halve(sum, fixed);
}
