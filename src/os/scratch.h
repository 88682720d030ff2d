/* Memory for a while: pages of its own, outside the heap, that read as zero. */
#ifndef HAK_OS_SCRATCH_H
#define HAK_OS_SCRATCH_H

#include <stddef.h>

/* At least `bytes`. NULL: no memory. */
void *scratch_take(size_t bytes);

/* Of the same `bytes`. */
void scratch_drop(void *at, size_t bytes);

#endif
