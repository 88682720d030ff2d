/* Stacks in reports, one line a call, as AddressSanitizer writes them: tools for its reports read these too. */
#ifndef HAK_CHECK_STACK_TEXT_H
#define HAK_CHECK_STACK_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "os/frame.h"

/* Writes the calls (unwind.h) to stderr; of the library's own at the top, only the first: what the program has called. */
void stack_write(const uintptr_t *calls, size_t count);

/* The same of the stack that begins there. */
void stack_write_from(const struct os_frame *from);

#endif
