/* In place of span/growth.c: what it looks at has no part in any protocol, and each further access multiplies the orders. */
#include "span/growth.h"

size_t growth_begin(size_t bytes)
{
    (void)bytes;
    return 0;
}

void growth_end(size_t wanted, size_t given)
{
    (void)wanted;
    (void)given;
}
