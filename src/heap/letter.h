/* What travels from heap to heap. Of mail.h, and of tests that look into heaps. */
#ifndef HAK_HEAP_LETTER_H
#define HAK_HEAP_LETTER_H

#include <stdint.h>

enum { LETTER_BLOCKS = 60, PILE_GRAIN = 64 };

struct letter {
    struct letter *next;
    struct heap *to; /* while it is in an outbox */
    uint16_t count;
    uint16_t visits; /* of the owner to its door when the lowest of them was posted, modulo 2^16 */
    uint32_t bytes;  /* of its blocks */
    uint32_t pile;   /* what it and the letters below it hold and are, in PILE_GRAINs, about */
    uint32_t since;  /* when the lowest of them was posted, in ms */
    void *block[LETTER_BLOCKS];
};

_Static_assert(sizeof(struct letter) == 512, "a letter is eight cache lines");

#endif
