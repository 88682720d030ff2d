/*
 * random_mixed CYCLES SIZE|mixed SEED [--slots N]
 *
 * Each cycle picks one of N slots (default 8192) at random: a full one is freed, an empty one is filled with a
 * block of SIZE bytes, or of 16 to 1040 for "mixed", whose first byte is written. Prints operations (each a
 * malloc or a free) per second.
 */
#include <stdbool.h>
#include <string.h>

#include "args.h"
#include "timing.h"

enum { MIXED_LEAST = 16, MIXED_SPREAD = 1025 };

struct plan {
    uint64_t cycles;
    uint64_t slots;
    uint64_t size; /* 0: mixed */
    uint64_t seed;
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
    return (struct plan){
        .cycles = args_number("CYCLES", words[1], 1, UINT64_MAX / 2),
        .size = strcmp(words[2], "mixed") == 0 ? 0 : args_number("SIZE", words[2], 1, UINT32_MAX),
        .seed = args_number("SEED", words[3], 1, UINT64_MAX / 2),
        .slots = count == 6 ? args_number("--slots", words[5], 1, UINT32_MAX) : 8192,
    };
}

/* The loop of each kind of size by itself, so that the choice is not part of what is measured. */
static inline __attribute__((always_inline)) void run_loop(const struct plan *plan, char **slots, bool mixed)
{
    uint64_t state = plan->seed;
    for (uint64_t i = 0; i < plan->cycles; i++) {
        uint64_t random = random_next(&state);
        char **slot = &slots[random_below(random, plan->slots)];
        if (*slot != NULL) {
            free(*slot);
            *slot = NULL;
            continue;
        }
        size_t size = mixed ? MIXED_LEAST + random_below(random << 32, MIXED_SPREAD) : plan->size;
        char *block = malloc(size);
        if (block == NULL) {
            fputs("random_mixed: out of memory\n", stderr);
            exit(1);
        }
        *block = (char)i;
        *slot = block;
    }
}

int main(int count, char **words)
{
    struct plan plan = parse(count, words);
    char **slots = calloc(plan.slots, sizeof *slots);
    if (slots == NULL) {
        fputs("random_mixed: out of memory\n", stderr);
        return 1;
    }
    double start = timing_seconds();
    if (plan.size == 0)
        run_loop(&plan, slots, true);
    else
        run_loop(&plan, slots, false);
    double seconds = timing_seconds() - start;
    for (uint64_t i = 0; i < plan.slots; i++)
        free(slots[i]);
    free(slots);
    printf("Throughput = %.0f operations per second (%.3f s)\n", (double)plan.cycles / seconds, seconds);
    return 0;
}
