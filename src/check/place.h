/* Where an address lies beside a block, and who has allocated and freed that: the end of a report, as AddressSanitizer writes
 * it. */
#ifndef HAK_CHECK_PLACE_H
#define HAK_CHECK_PLACE_H

#include <stddef.h>
#include <stdint.h>

/* Who did something to a block. */
struct place_event {
    int thread;             /* 0: nobody did */
    const uintptr_t *calls; /* may be none: no stack was taken */
    size_t count;
};

/* Writes to the report. `end` is that of the block as it was requested. */
void place_write(uintptr_t address, uintptr_t start, uintptr_t end, const struct place_event *allocated,
                 const struct place_event *freed);

/* How the instruction that a signal has interrupted has touched memory: "READ", "WRITE", "EXECUTE" (it was to be read as an
 * instruction), or "access" if that is not known. */
const char *place_access(const void *context);

#endif
