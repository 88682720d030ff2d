#include "os/os.h"

bits128 os_purge_pieces(char *base, bits128 pieces, unsigned shift)
{
    bits128 purged = 0;
    while (pieces != 0) {
        unsigned first;
        unsigned count = lowest_run128(pieces, &first);
        bits128 run = mask128(count) << first;
        pieces &= ~run;
        if (os_purge(base + ((size_t)first << shift), (size_t)count << shift))
            purged |= run;
    }
    return purged;
}
