/*
 * A library whose constructor and destructor allocate. It is initialised before the allocator's library when
 * that is preloaded, and finalised after it.
 */
#include "late_library.h"

#include <stdlib.h>
#include <string.h>

static char *from_constructor;

__attribute__((constructor)) static void construct(void)
{
    from_constructor = malloc(300);
    if (from_constructor == NULL) {
        abort();
    }
    memset(from_constructor, 'c', 300);
}

char *late_library_take(void)
{
    char *block = from_constructor;
    from_constructor = malloc(400);
    if (from_constructor == NULL) {
        abort();
    }
    memset(from_constructor, 'm', 400);
    return block;
}

__attribute__((destructor)) static void destruct(void)
{
    if (from_constructor[399] != 'm') {
        abort();
    }
    from_constructor = realloc(from_constructor, 40000);
    if (from_constructor == NULL || from_constructor[399] != 'm') {
        abort();
    }
    free(from_constructor);
}
