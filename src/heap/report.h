/* Fatal reports about pointers: one line that names fault, pointer, class and thread. */
#ifndef HAK_HEAP_REPORT_H
#define HAK_HEAP_REPORT_H

#include <stddef.h>

#include "base/compiler.h"
#include "slab/slab.h"

#define FAULT_DOUBLE_FREE "double free"
#define FAULT_INVALID_FREE "invalid free"
#define FAULT_WRONG_SIZE "too large a size in free"
#define FAULT_OTHER_SIZE "size mismatch in free"
#define FAULT_INVALID_USE "invalid use"
#define FAULT_USE_AFTER_FREE "use after free"
#define FAULT_WRITE_AFTER_FREE "write after free"
#define FAULT_OVERFLOW "overflow"

/* Ends the process. What the tag map knows of `p`, any value, is added. */
_Noreturn COLD void report_pointer(const char *fault, const void *p);

/* The same for a pointer that its slab refused to take back: `verdict` is not SLAB_FINE. */
_Noreturn COLD void report_refused(enum slab_verdict verdict, const void *p);

#endif
