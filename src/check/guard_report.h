/* What is said of guarded blocks, in AddressSanitizer's layout. */
#ifndef HAK_CHECK_GUARD_REPORT_H
#define HAK_CHECK_GUARD_REPORT_H

#include <stdint.h>

#include "base/compiler.h"
#include "check/guard.h"

/* What somebody has done with a pointer. */
enum guard_fault {
    GUARD_BAD_POINTER,    /* freed or resized what is no block */
    GUARD_DOUBLE_FREE,
    GUARD_USE_AFTER_FREE, /* resized a freed block, or asked for its size */
    GUARD_WRITTEN_BEYOND, /* before it was freed: the bytes behind its end have changed */
    GUARD_WRONG_SIZE,     /* freed with a larger size than it has */
};

/* Writes it to the report and aborts. */
_Noreturn COLD void guard_report_pointer(enum guard_fault fault, uintptr_t address, struct guard_place place);

/* From now on SIGSEGV at an address among the slots is reported, and then goes to the program's handler. Anywhere, once
 * os_find_sigaction has been called. */
void guard_report_start(void);

/* In the child of a fork: whoever wrote a report is not there. */
void guard_report_forked(void);

#endif
