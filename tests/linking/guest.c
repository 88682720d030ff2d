/* A plugin that allocates. Built without hakmem, with the shared library, and with a copy of its own. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *guest_malloc(size_t size);
EXPORT void guest_free(void *block);
EXPORT size_t guest_usable_size(void *block);
EXPORT char *guest_copy(const char *text);

void *guest_malloc(size_t size)
{
    return malloc(size);
}

void guest_free(void *block)
{
    free(block);
}

size_t guest_usable_size(void *block)
{
    return malloc_usable_size(block);
}

/* The C library allocates, as it does everywhere. */
char *guest_copy(const char *text)
{
    return strdup(text);
}
