#include "support.h"

#include "check.h"
#include "child.h"
#include "family.h"

#include <stdio.h>
#include <sys/mman.h>

enum { FAULT_BLOCKS = 20000 };
static void *blocks[FAULT_BLOCKS];
static size_t block_count;

/* Shared with the child. */
static const void *volatile *announced;

void fault_prepare(size_t size)
{
    const size_t affordable = (256u << 20) / size;
    block_count = affordable < FAULT_BLOCKS ? affordable : FAULT_BLOCKS;
    for (size_t i = 0; i < block_count; i++) {
        blocks[i] = family.malloc(size);
        CHECK(blocks[i] != NULL);
    }
}

void fault_flush(void)
{
    for (size_t i = 0; i < block_count; i++) {
        family.free(blocks[i]);
    }
}

void fault_announce(const void *ptr)
{
    *announced = ptr;
}

bool fault_is_reported(void (*action)(uintptr_t value), uintptr_t value, const char *format)
{
    if (announced == NULL) {
        void *shared = mmap(NULL, sizeof *announced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(shared != MAP_FAILED);
        announced = shared;
    }
    *announced = NULL;
    const struct child child = child_run(action, value);

    char pointer[32];
    char line[512];
    snprintf(pointer, sizeof pointer, "0x%zx", (size_t)(uintptr_t)*announced);
    const char *before = format;
    const char *after = NULL;
    for (const char *at = format; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 's') {
            after = at + 2;
            break;
        }
    }
    CHECK(after != NULL);
    snprintf(line, sizeof line, "%.*s%s%s", (int)(after - 2 - before), before, pointer, after);
    return child_died_saying(&child, line);
}
