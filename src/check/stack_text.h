/* Stacks in reports, one line a call, as AddressSanitizer writes them: tools for its reports read these too. */
#ifndef HAK_CHECK_STACK_TEXT_H
#define HAK_CHECK_STACK_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "observe/unwind.h"
#include "os/frame.h"

/* Writes the calls (unwind.h), without those of the library's own at the top: from where the program has called it. Of a
 * return address the address before it is written, as AddressSanitizer does: that is in the call. */
void stack_write(const uintptr_t *calls, size_t count);

/* Stands for the module from which the program has called the library, at the function where the stack begins; 0: not known. */
uintptr_t stack_caller(const uintptr_t *calls, size_t count);

/* The same of the stack that begins there. */
void stack_write_from(const struct os_frame *from, enum unwind_trust trust);

/* All of that, wherever it begins. */
void stack_write_whole(const struct os_frame *from);

#endif
