/* A C program that loads a plugin in C++: libstdc++ comes later than hakmem, and only for the plugin. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "check.h"

static bool call(void *plugin, const char *name)
{
    bool (*function)(void) = NULL;
    *(void **)&function = dlsym(plugin, name);
    CHECK(function != NULL);
    return function();
}

int main(void)
{
    void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin != NULL);
    CHECK(call(plugin, "plugin_new_throws"));
    CHECK(call(plugin, "plugin_nothrow_is_null"));
    puts("plugin: ok");
    return 0;
}
