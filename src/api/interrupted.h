/* For who runs a program's signal handlers: begin before, end after (heap/interrupt.h says why). */
#ifndef HAK_API_INTERRUPTED_H
#define HAK_API_INTERRUPTED_H

#include "base/compiler.h"
#include "heap/interrupt.h"

/* `context` is the handler's third argument, `returns_to` its return address. The caller is FRAGILE. Async-signal-safe;
 * keeps errno. */
HIDDEN struct interruption interrupted_begin(const void *context, const void *returns_to);
HIDDEN void interrupted_end(struct interruption interruption);

#endif
