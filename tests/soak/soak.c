/*
 * A long run whose threads, sizes and phases change from round to round. Every block is filled with a pattern and has a
 * record outside the allocator (block.h): content, zeroes from calloc, alignment and usable size are checked, and by the
 * content that no two blocks overlap. After each round all but a few small blocks are freed and the caches purged;
 * resident memory may then not grow.
 *
 *   soak [--minutes N] [--rounds N] [--seed S] [--threads MOST] [--no-forks] [--no-trims]      (--help says more)
 *
 * It runs under any allocator; without hakmem growth is not checked. The seed repeats what each thread does, but for what
 * a hard limit refuses; not how threads interleave, which blocks of others they find, and when time ends a run.
 */
#include "check.h"
#include "drift.h"
#include "process.h"
#include "public.h"
#include "round.h"
#include "scale.h"
#include "where.h"

#include <stdio.h>

/* The largest of the first rounds says what a heap keeps. More than this above it, in bytes, is a leak; and so is less, if it
 * is what the last third of many rounds has more than the first. */
/* There are more rounds than the first ones in any case, short ones if time is over. */
enum { FIRST_ROUNDS = 3, LEAST_ROUNDS = FIRST_ROUNDS + 2, SHORT_MS = 250, GROWTH_BYTES = 8 << 20, DRIFT_BYTES = 2 << 20 };

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* Why growth cannot be checked, or NULL. */
static const char *growth_unknown(bool trims)
{
    if (!public_is_there()) {
        return "there is no hak_purge";
    }
    if (!trims) {
        return "caches were not emptied";
    }
    return HAK_TEST_RSS_FACTOR != 1 ? "resident memory is also the sanitizer's or the emulator's" : NULL;
}

static void print_round(const struct round *round, uint64_t elapsed_ms)
{
    printf("soak: round %zu: %.1f s, %zu thread%s, %zu blocks, peak %.1f MiB, after %s %.1f MiB", round->number,
           (double)elapsed_ms / 1000, round->threads, round->threads == 1 ? "" : "s", round->blocks,
           mib(round->peak_bytes), public_is_there() ? "purge" : "frees", mib(round->after_bytes));
    if (round->hard_bytes != 0) {
        printf(", limit %.0f MiB hard, %zu refused", mib(round->hard_bytes), round->refused);
    } else if (round->soft_bytes != 0) {
        printf(", limit %.0f MiB soft", mib(round->soft_bytes));
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    static char buffer[BUFSIZ];
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
    const struct options options = options_read(argc, argv);
    printf("soak: seed %llu, up to %zu threads, %g minutes, hakmem %s\n", (unsigned long long)options.seed, options.threads,
           options.minutes, public_name());
    static char repeat[128];
    snprintf(repeat, sizeof repeat, "--seed %llu --threads %zu%s%s", (unsigned long long)options.seed, options.threads,
             options.forks ? "" : " --no-forks", options.trims ? "" : " --no-trims");
    where_begin(repeat, HAK_TEST_RSS_FACTOR == 1);
    public_allow_trims(options.trims);
    rounds_begin(&options);

    const uint64_t began_ms = process_now_ms();
    const uint64_t deadline_ms = began_ms + (uint64_t)(options.minutes * 60000);
    const char *unknown = growth_unknown(options.trims);
    size_t first_bytes = 0, later_bytes = 0, blocks = 0, number = 0;
    while ((process_now_ms() < deadline_ms || number < LEAST_ROUNDS) && (options.rounds == 0 || number < options.rounds)) {
        number++;
        const uint64_t short_ms = process_now_ms() + SHORT_MS;
        const struct round round = round_run(number, number <= LEAST_ROUNDS && short_ms > deadline_ms ? short_ms : deadline_ms);
        print_round(&round, process_now_ms() - began_ms);
        blocks += round.blocks;
        drift_note(round.after_bytes);
        size_t *most = number <= FIRST_ROUNDS ? &first_bytes : &later_bytes;
        *most = round.after_bytes > *most ? round.after_bytes : *most;
        if (unknown == NULL && later_bytes > first_bytes + GROWTH_BYTES) {
            failed(NULL, "%.1f MiB are left, %.1f in the first rounds; up to %.1f more are allowed", mib(later_bytes),
                   mib(first_bytes), mib(GROWTH_BYTES));
        }
    }
    rounds_end();
    if (unknown == NULL && number <= FIRST_ROUNDS) {
        unknown = "there were fewer than four rounds";
    }
    if (unknown != NULL) {
        check_skipped("soak: growth", unknown);
    } else {
        printf("soak: after purge %.1f MiB at most in the first rounds, %.1f later; %.1f more would be a failure\n",
               mib(first_bytes), mib(later_bytes), mib(GROWTH_BYTES));
    }
    struct drift drift;
    if (unknown == NULL && drift_between(&drift)) {
        printf("soak: after purge %.2f MiB in the middle of the first third of the rounds, %.2f of the last\n", mib(drift.first),
               mib(drift.last));
        if (drift.last > drift.first + DRIFT_BYTES) {
            failed(NULL, "what is left grows: by %.2f MiB; %.2f are allowed", mib(drift.last - drift.first), mib(DRIFT_BYTES));
        }
    }
    printf("soak: ok, %zu rounds, %zu blocks in %.1f s\n", number, blocks, (double)(process_now_ms() - began_ms) / 1000);
    return 0;
}
