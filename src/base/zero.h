/* Is memory all zero? */
#ifndef HAK_BASE_ZERO_H
#define HAK_BASE_ZERO_H

#include <stdbool.h>
#include <stddef.h>

bool is_zero(const void *at, size_t bytes);

#endif
