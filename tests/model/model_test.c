/*
 * Random sequences of the whole family on several threads, checked against a shadow of every block.
 *
 *   model_test [SEED [OPERATIONS [THREADS]]]
 *
 * OPERATIONS is per thread. The seed is printed first; without one, or with 0, it is taken from the clock.
 * A single thread repeats a run exactly; several repeat each thread's choices, not how they interleave.
 */
#include "actions.h"
#include "check.h"
#include "family.h"
#include "interval_set.h"
#include "process.h"
#include "random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

static struct player players[MOST_THREADS];

int main(int argc, char **argv)
{
    family_require_hakmem();
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    const size_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : 200000;
    const size_t threads = argc > 3 ? strtoull(argv[3], NULL, 0) : 4;
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "model_test: 1 to %d threads\n", MOST_THREADS);
        return 2;
    }
    if (seed == 0) {
        seed = 1 + (process_now_ms() * 100003 + (uint64_t)getpid()) % 1000000000;
    }
    static char note[128];
    snprintf(note, sizeof note, "(repeat with: model_test %llu %zu %zu)", (unsigned long long)seed, operations, threads);
    check_set_note(note);
    printf("model: %s, seed %llu, %zu operations on each of %zu threads\n", family.name, (unsigned long long)seed,
           operations, threads);
    fflush(stdout);

    interval_set_init();
    pthread_t ids[MOST_THREADS];
    for (size_t i = 0; i < threads; i++) {
        player_init(&players[i], seed + i * 1000003, operations);
        CHECK(pthread_create(&ids[i], NULL, player_run, &players[i]) == 0);
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    /* What is left goes to this thread: all of it is remote, from threads that are gone. */
    for (size_t i = 0; i < threads; i++) {
        player_free_all(&players[i]);
    }
    exchange_free_all();
    printf("model: ok, resident %zu MiB\n", process_rss_bytes() >> 20);
    return 0;
}
