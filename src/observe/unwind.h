/*
 * Stacks: who called whom, up to the start of the thread.
 *
 * By call frame information, which nearly all code has, and by frame pointers where it has none. Takes no lock and allocates
 * nothing. May be used anywhere, in signal handlers too.
 */
#ifndef HAK_OBSERVE_UNWIND_H
#define HAK_OBSERVE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/frame.h"

/* Does the stack have to be as the program's code has left it? */
enum unwind_trust {
    UNWIND_SOUND,  /* as for exceptions: it is the caller's own, and where it leads control will return to. It is read where it is, but
                      each page beyond the stack pointer's only once the kernel says that it is there: code that changes the stack
                      pointer by itself has call frame information that leads anywhere */
    UNWIND_BROKEN, /* nothing read from it is believed, but for a first frame that is linked: each word is copied by the kernel. A
                      stack that has been overwritten ends early; and each after one call, where the kernel does not copy */
};

/* The addresses of the instructions in progress, from->pc first, then the calls that led there; at most `most`. Returns how
 * many. */
size_t unwind(const struct os_frame *from, enum unwind_trust trust, uintptr_t *calls, size_t most);

enum { UNWIND_MEMO = 48 };

/* A call that was found, and where. */
struct unwind_call {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp;
    uintptr_t ra_at; /* where the return address was read; 0: it is not to be found that way again */
    uintptr_t fp_at; /* the same of the frame pointer; 0: it is still in the register */
    bool is_last;    /* the stack ends here */
};

/* What a thread's stack was the last time. Zeroed: nothing is known. */
struct unwind_memo {
    uint32_t count; /* of calls, at the end of the array */
    uint32_t age;   /* rules_age, when they were found */
    uint32_t left;  /* for so many stacks the pages from sure_at to sure_end count as there */
    uintptr_t sure_at;
    uintptr_t sure_end;
    struct unwind_call call[UNWIND_MEMO];
    /* Needed meanwhile: too much for a small stack. */
    struct unwind_call above[UNWIND_MEMO];
    struct unwind_call below[UNWIND_MEMO];
};

/* unwind of a sound stack, by a thread that does it often: most calls are the same as the last time, which is seen by two words
 * each. At most UNWIND_MEMO calls. */
size_t unwind_again(const struct os_frame *from, struct unwind_memo *memo, uintptr_t *calls, size_t most);

#endif
