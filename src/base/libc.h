/* What the headers of some C libraries lack. */
#ifndef HAK_BASE_LIBC_H
#define HAK_BASE_LIBC_H

#include <features.h>
#include <stddef.h>

/* mallinfo2(3) came with glibc 2.33: the fields of mallinfo, wide enough. A program built for it may run on the
 * library that was built against older headers. */
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if !__GLIBC_PREREQ(2, 33)
struct mallinfo2 {
    size_t arena;
    size_t ordblks;
    size_t smblks;
    size_t hblks;
    size_t hblkhd;
    size_t usmblks;
    size_t fsmblks;
    size_t uordblks;
    size_t fordblks;
    size_t keepcost;
};
struct mallinfo2 mallinfo2(void);
#endif
#endif

#endif
