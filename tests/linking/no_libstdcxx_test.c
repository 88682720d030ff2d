/*
 * Preloaded into a C program, the library neither needs nor brings libstdc++, and its operators are there
 * nevertheless: a C++ library may be opened later.
 */
#include "check.h"
#include "family.h"
#include "process.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void *(*new_function)(size_t size);
typedef void (*delete_function)(void *block);

int main(void)
{
    family_require_hakmem();
    CHECK(process_maps_file("libhakmem"));
    CHECK(!process_maps_file("libstdc++"));

    char *text = strdup("served");
    CHECK(text != NULL && strcmp(text, "served") == 0);
    free(text);

    /* operator new(size_t), new[], delete(void *), delete[]; POSIX lets dlsym give functions */
    new_function operator_new = NULL;
    delete_function operator_delete = NULL;
    *(void **)&operator_new = dlsym(RTLD_DEFAULT, "_Znwm");
    *(void **)&operator_delete = dlsym(RTLD_DEFAULT, "_ZdlPv");
    CHECK(operator_new != NULL && operator_delete != NULL);
    void *block = operator_new(100);
    CHECK(malloc_usable_size(block) == 112);
    operator_delete(block);

    void *libstdcxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
    if (libstdcxx != NULL) {
        block = operator_new(100);
        CHECK(malloc_usable_size(block) == 112);
        operator_delete(block);
    }
    printf("no libstdc++: ok\n");
    return 0;
}
