/* The soak's arguments. */
#ifndef HAK_SOAK_OPTIONS_H
#define HAK_SOAK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THREADS_MOST = 64 };

struct options {
    double minutes;
    size_t rounds; /* 0: as many as there is time for */
    uint64_t seed;
    size_t threads; /* at most */
    bool forks;
    bool trims; /* may threads empty the caches of others? */
};

/* Prints a line and exits with 2 where an argument is not legal; prints the use and exits with 0 for --help. */
struct options options_read(int argc, char **argv);

#endif
