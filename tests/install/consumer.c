/* Uses hakmem by name. WANTED_VERSION is what the package said of itself. A block of 100 bytes says whose it is. */
#include <hakmem.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WANTED_HARDENED
enum { USABLE = 100 };
#else
enum { USABLE = 112 };
#endif

static void *(*volatile plain_malloc)(size_t) = malloc;

int main(void)
{
    char *block = plain_malloc(100);
    if (block == NULL || malloc_usable_size(block) != USABLE || hak_malloc_usable_size(block) != USABLE) {
        fputs("malloc is not hakmem's\n", stderr);
        return 1;
    }
    hak_free(block);
    if (strcmp(hak_version(), WANTED_VERSION) != 0) {
        fprintf(stderr, "the library says %s, the package %s\n", hak_version(), WANTED_VERSION);
        return 1;
    }
    puts("served");
    return 0;
}
