/*
 * A module is unloaded, and another is loaded into its place, whose functions are at the same addresses and have other frames: where
 * stacks are taken at each allocation, nothing that was known of the first one leads astray now.
 *
 *   unload_test MODULE MODULE [report]
 *
 * `report`: of a block that is freed twice, the stack that allocated it is told, and leads through the module to this program.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "child.h"

enum { ALLOCATIONS = 2000, SKIPPED = 77 };

void module_see(void *p);

void module_see(void *p)
{
    __asm__ volatile("" ::"r"(p) : "memory");
}

typedef void *allocate_function(size_t size);

static allocate_function *allocate;

static void free_twice(uintptr_t unused)
{
    (void)unused;
    void *p = allocate(100);
    void *volatile again = p;
    free(p);
    free(again);
}

static void check_report(const char *module)
{
    struct child child = child_run(free_twice, 0);
    const char *name = strrchr(module, '/') + 1;
    char *stack = strstr(child.output, "allocated by");
    CHECK(stack != NULL);
    char *end = strstr(stack, "\n\n");
    if (end != NULL)
        *end = '\0';
    char *in_module = strstr(stack, name);
    CHECK(in_module != NULL && strstr(in_module, "/unload+") != NULL);
}

static allocate_function *use(const char *path, int reports)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(module != NULL);
    allocate = (allocate_function *)dlsym(module, "module_allocate");
    CHECK(allocate != NULL);
    for (int i = 0; i < ALLOCATIONS; i++)
        free(allocate(100));
    if (reports)
        check_report(path);
    CHECK(dlclose(module) == 0);
    return allocate;
}

int main(int count, char **words)
{
    CHECK(count == 3 || (count == 4 && strcmp(words[3], "report") == 0));
    allocate_function *first = use(words[1], count == 4);
    allocate_function *second = use(words[2], count == 4);
    if (first != second) {
        puts("unload: the second module does not lie where the first one was");
        return SKIPPED;
    }
    puts("unload: ok");
    return 0;
}
