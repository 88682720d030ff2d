/* What happens to one address, or to blocks of one size class, each time with the stack (HAKMEM_TRACE). In check mode, which
 * sees every operation. */
#ifndef HAK_CHECK_TRACE_H
#define HAK_CHECK_TRACE_H

#include "check/run.h"
#include "os/frame.h"

/* A block was allocated, or is about to be freed, by a call that began there (NULL: not known). Writes it to the report if it is
 * what is traced, and not more has been written than policy says. */
void trace_allocated(const struct checked *block, const struct os_frame *from);
void trace_freed(const struct checked *block, const struct os_frame *from);

#endif
