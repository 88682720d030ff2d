/* What the fault cases share: they run in a child, whose allocations are its own. */
#ifndef HAK_TEST_FAULT_SUPPORT_H
#define HAK_TEST_FAULT_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Many live blocks of one size (20,000, or 256 MiB of them, untouched), to be freed by fault_flush so that
 * magazines overflow and are audited. */
void fault_prepare(size_t size);
void fault_flush(void);

/* Writes the pointer the child is about to misuse where the parent can read it. */
void fault_announce(const void *ptr);

/* Runs the action in a child; true if it aborted with the one line `format`, in which %s is the pointer that
 * the child announced. */
bool fault_is_reported(void (*action)(uintptr_t value), uintptr_t value, const char *format);

#endif
