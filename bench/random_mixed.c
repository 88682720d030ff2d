/*
 * random_mixed CYCLES SIZE|mixed SEED [--slots N]
 *
 * Each cycle picks one of N slots (default 8192) at random: a full one is freed, an empty one is filled with a
 * block of SIZE bytes, or of 16 to 1040 for "mixed". The first and the last byte of a block are written, and
 * must be intact when it is freed; so each free reads two bytes of a block that may be cold. Prints operations
 * (each a malloc or a free) per second.
 */
#include <stdbool.h>
#include <string.h>

#include "args.h"
#include "timing.h"

enum { MIXED_LEAST = 16, MIXED_SPREAD = 1025 };

struct plan {
    uint64_t cycles;
    uint64_t slots;
    uint64_t size; /* bytes; 0: mixed */
    uint64_t seed;
};

struct slot {
    char *block;   /* NULL: empty */
    uint32_t size; /* bytes */
    char mark;     /* the block's first and last byte */
};

static void usage(void)
{
    fputs("usage: random_mixed CYCLES SIZE|mixed SEED [--slots N]\n", stderr);
    exit(2);
}

static struct plan parse(int count, char **words)
{
    if (count != 4 && (count != 6 || strcmp(words[4], "--slots") != 0))
        usage();
    bool mixed = strcmp(words[2], "mixed") == 0;
    return (struct plan){
        .cycles = args_number("CYCLES", words[1], 1, UINT64_MAX / 2),
        .size = mixed ? 0 : args_number_or("SIZE", words[2], 1, UINT32_MAX, " or mixed"),
        .seed = args_number("SEED", words[3], 1, UINT64_MAX / 2),
        .slots = count == 6 ? args_number("--slots", words[5], 1, UINT32_MAX) : 8192,
    };
}

static __attribute__((noinline, noreturn)) void damaged(const struct slot *slot)
{
    fprintf(stderr, "random_mixed: block %p of %u bytes is damaged: first byte %d, last byte %d, both were %d\n",
            (void *)slot->block, slot->size, slot->block[0], slot->block[slot->size - 1], slot->mark);
    abort();
}

static __attribute__((noinline, noreturn)) void out_of_memory(void)
{
    fputs("random_mixed: out of memory\n", stderr);
    exit(1);
}

static inline void empty(struct slot *slot)
{
    if (slot->block[0] != slot->mark || slot->block[slot->size - 1] != slot->mark)
        damaged(slot);
    free(slot->block);
    slot->block = NULL;
}

static inline void fill(struct slot *slot, uint32_t size, char mark)
{
    char *block = malloc(size);
    if (block == NULL)
        out_of_memory();
    block[0] = mark;
    block[size - 1] = mark;
    *slot = (struct slot){.block = block, .size = size, .mark = mark};
}

/* The loop of each kind of size by itself, so that the choice is not part of what is measured. */
static inline __attribute__((always_inline)) void run_loop(const struct plan *plan, struct slot *slots, bool mixed)
{
    uint64_t state = plan->seed;
    for (uint64_t i = 0; i < plan->cycles; i++) {
        uint64_t random = random_next(&state);
        struct slot *slot = &slots[random_below(random, plan->slots)];
        if (slot->block != NULL)
            empty(slot);
        else
            fill(slot, (uint32_t)(mixed ? MIXED_LEAST + random_below(random << 32, MIXED_SPREAD) : plan->size),
                 (char)random);
    }
}

int main(int count, char **words)
{
    struct plan plan = parse(count, words);
    struct slot *slots = calloc(plan.slots, sizeof *slots);
    if (slots == NULL)
        out_of_memory();
    double start = timing_seconds();
    if (plan.size == 0)
        run_loop(&plan, slots, true);
    else
        run_loop(&plan, slots, false);
    double seconds = timing_seconds() - start;
    for (uint64_t i = 0; i < plan.slots; i++)
        if (slots[i].block != NULL)
            empty(&slots[i]);
    free(slots);
    printf("Throughput = %.0f operations per second (%.3f s)\n", (double)plan.cycles / seconds, seconds);
    return 0;
}
