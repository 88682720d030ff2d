/* What lies at an address, for reports: any address, any thread, at any moment. Takes no lock; while other threads work, it
 * may be a moment behind. */
#ifndef HAK_CHECK_NEAREST_H
#define HAK_CHECK_NEAREST_H

#include <stddef.h>
#include <stdint.h>

/* Writes it as the end of a sentence that begins with "the address is", at most `capacity` bytes with the ending zero.
 * Returns the length. */
size_t nearest_describe(uintptr_t address, char *text, size_t capacity);

#endif
