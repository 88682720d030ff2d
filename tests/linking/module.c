/* A module that can be built with frames of one size or another, its code being the same otherwise. */
#include <stdlib.h>

void module_see(void *p);
void *module_allocate(size_t size);

__attribute__((noinline)) static void *allocate(size_t size)
{
    char frame[FRAME_BYTES];
    module_see(frame);
    void *p = malloc(size);
    module_see(frame);
    return p;
}

void *module_allocate(size_t size)
{
    void *p = allocate(size);
    module_see(p);
    return p;
}
