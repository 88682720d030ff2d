#include "storm.h"

#include "check.h"
#include "process.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_SECONDS = 600 };

static unsigned duration;
static uint64_t began_ms;

void storm_begin(int *argc, char **argv, unsigned seconds)
{
    duration = seconds;
    began_ms = process_now_ms();
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--storm") != 0) {
            continue;
        }
        const char *wanted = getenv("HAK_TEST_STORM_SECONDS");
        duration = wanted == NULL ? LONG_SECONDS : (unsigned)strtoul(wanted, NULL, 10);
        CHECK(duration > 0);
        memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof *argv);
        (*argc)--;
        return;
    }
}

unsigned storm_seconds(void)
{
    return duration;
}

bool storm_goes_on(void)
{
    return process_now_ms() - began_ms < (uint64_t)duration * 1000;
}
