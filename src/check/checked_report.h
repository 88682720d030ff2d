/* Reports of what is wrong with checked blocks, as AddressSanitizer writes them. */
#ifndef HAK_CHECK_CHECKED_REPORT_H
#define HAK_CHECK_CHECKED_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/run.h"
#include "heap/keeper.h"
#include "os/frame.h"

/* Ends the process. `address` is what was freed, or the byte that was changed; `how` says what has found it, "found by free"
 * for example. */
_Noreturn void checked_report(const char *kind, uintptr_t address, const char *how, const struct checked *block);

/* The same of what is found when the program has ended: where it was is not known. */
_Noreturn void checked_report_at_exit(const char *kind, uintptr_t address, const struct checked *block);

/* The same as a part of another report, which goes on. */
void checked_note_changed(const char *kind, uintptr_t address, const struct checked *block);

/* Of a pointer that is in no checked block. Ends the process. */
_Noreturn void checked_report_stranger(const char *fault, const void *p);

/* A warning: how the block was allocated and how it is freed do not go together. Nothing, unless stacks say that one module,
 * program or library, has done both. */
void checked_warn_of_family(const struct checked *block, const struct freeing *how);

/* Ends the process: the caller says another size than it has asked for. */
_Noreturn void checked_report_size(const struct checked *block, size_t size);

/* Of a fault at this address, or anywhere. False: nothing is known of it. */
bool checked_report_fault(uintptr_t address, const void *context);

#endif
