/* A C program linked with libhakmem.a: malloc is hakmem's, with the C library dynamic or static. */
#include "hakmem.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*volatile plain_malloc)(size_t) = malloc;

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    signals += number == SIGUSR1;
}

static int failed(const char *what)
{
    fprintf(stderr, "static: %s\n", what);
    return 1;
}

int main(void)
{
    const char *info = hak_build_info();
    if (strlen(hak_version()) == 0 || strstr(info, hak_version()) == NULL || strchr(info, '\n') != NULL) {
        return failed("no version");
    }
    void *block = plain_malloc(100);
    if (block == NULL || malloc_usable_size(block) != 112 || hak_malloc_usable_size(block) != 112) {
        return failed("malloc is not hakmem's");
    }
    hak_free(block); /* one heap */
    free(hak_malloc(100));

    /* What the C library allocates for itself comes from there too. */
    char *copy = strdup("a string of more than sixteen bytes");
    if (copy == NULL || hak_malloc_usable_size(copy) != 48) {
        return failed("strdup does not use hakmem");
    }
    free(copy);
    char *line = NULL;
    if (asprintf(&line, "%d", 42) != 2 || hak_malloc_usable_size(line) < 3) {
        return failed("asprintf does not use hakmem");
    }
    free(line);

    if (signal(SIGUSR1, count_signal) == SIG_ERR || raise(SIGUSR1) != 0 || signals != 1) {
        return failed("no signals");
    }
    puts("static: ok");
    return 0;
}
