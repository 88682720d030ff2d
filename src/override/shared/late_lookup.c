#include "override/late_lookup.h"

#include <dlfcn.h>
#include <stddef.h>

/* In libdl before glibc 2.34; whoever loads plugins has it. */
#pragma weak dlopen
#pragma weak dlsym

void *late_lookup(const char *name)
{
    void *(*open)(const char *, int) = dlopen;
    void *(*find)(void *restrict, const char *restrict) = dlsym;
    if (open == NULL || find == NULL)
        return NULL;
    void *library = open("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return library != NULL ? find(library, name) : NULL;
}

void *late_lookup_next(const char *name)
{
    void *(*find)(void *restrict, const char *restrict) = dlsym;
    return find != NULL ? find(RTLD_NEXT, name) : NULL;
}
