#include "options.h"

#include "process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char USE[] = "use: soak [--minutes N] [--rounds N] [--seed S] [--threads MOST] [--no-forks] [--no-trims]";
static const char HELP[] =
    "\n"
    "A long run whose threads, sizes and phases change; every block is checked against a record of it.\n"
    "\n"
    "  --minutes N     how long: 0.01 to 100000 (default: 10)\n"
    "  --rounds N      and not more than N rounds: 1 to 1000000000 (default: as many as there is time for)\n"
    "  --seed S        what is done: 0 to 18446744073709551615 (default: another each time, printed first)\n"
    "  --threads MOST  of a round, at most: 1 to 64 (default: 16)\n"
    "  --no-forks      without children\n"
    "  --no-trims      no thread empties the caches of others\n"
    "\n"
    "Exit code 1 and one line: a check has failed; 2: an argument is not legal.\n";

__attribute__((noreturn)) static void refuse(const char *option, const char *value, const char *legal)
{
    fprintf(stderr, "soak: %s %s: legal values are %s\n", option, value, legal);
    exit(2);
}

static uint64_t read_whole(const char *option, const char *value, uint64_t least, uint64_t most, const char *legal)
{
    char *end = NULL;
    errno = 0;
    const uint64_t number = strtoull(value, &end, 0);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < least || number > most) {
        refuse(option, value, legal);
    }
    return number;
}

static double read_minutes(const char *value)
{
    char *end = NULL;
    const double minutes = strtod(value, &end);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || !(minutes >= 0.01 && minutes <= 100000)) {
        refuse("--minutes", value, "0.01 to 100000");
    }
    return minutes;
}

static void read_one(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--minutes") == 0) {
        options->minutes = read_minutes(value);
    } else if (strcmp(name, "--rounds") == 0) {
        options->rounds = read_whole(name, value, 1, 1000000000, "1 to 1000000000");
    } else if (strcmp(name, "--seed") == 0) {
        options->seed = read_whole(name, value, 0, UINT64_MAX, "0 to 18446744073709551615");
    } else {
        options->threads = read_whole(name, value, 1, THREADS_MOST, "1 to 64");
    }
}

static bool takes_value(const char *name)
{
    return strcmp(name, "--minutes") == 0 || strcmp(name, "--rounds") == 0 || strcmp(name, "--seed") == 0 ||
           strcmp(name, "--threads") == 0;
}

struct options options_read(int argc, char **argv)
{
    struct options options = {
        .minutes = 10,
        .seed = (process_now_ms() * 100003 + (uint64_t)getpid()) % 1000000000,
        .threads = 16,
        .forks = true,
        .trims = true,
    };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("%s\n%s", USE, HELP);
            exit(0);
        }
        if (strcmp(argv[i], "--no-forks") == 0) {
            options.forks = false;
        } else if (strcmp(argv[i], "--no-trims") == 0) {
            options.trims = false;
        } else if (!takes_value(argv[i])) {
            fprintf(stderr, "soak: unknown argument %s; %s\n", argv[i], USE);
            exit(2);
        } else if (i + 1 == argc) {
            fprintf(stderr, "soak: %s needs a value; %s\n", argv[i], USE);
            exit(2);
        } else {
            read_one(&options, argv[i], argv[i + 1]);
            i++;
        }
    }
    return options;
}
