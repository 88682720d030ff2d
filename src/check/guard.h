/*
 * Guarded samples, for production: now and then, by requested bytes, an allocation gets a page of its own, at one end of
 * it, between pages that nothing may touch. After free the page is closed, too, until its slot is needed again. A touch of any
 * of them is reported with the stacks of allocation, free and fault (guard_report.c), and ends as it would have: in the
 * program's own handler, or in its death.
 *
 * Slots are taken and given back by an exchange of their state; there is no lock. A fork needs to know nothing of them: its child
 * loses the slot that another thread was about to change, and has no guards if one was about to make the slots, at the first sample.
 */
#ifndef HAK_CHECK_GUARD_H
#define HAK_CHECK_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARD_CALLS = 32 };

/* Who did something to a block. */
struct guard_event {
    int thread;
    uint32_t count;
    uintptr_t calls[GUARD_CALLS];
};

enum guard_state {
    GUARD_UNUSED,
    GUARD_BUSY,  /* some thread is about to change it */
    GUARD_LIVE,
    GUARD_FREED, /* and its page is closed */
};

struct guard_slot {
    uint32_t state;
    uint32_t freed_in_turn; /* the least was freed the longest ago */
    char *block;
    size_t size;            /* as it was requested, bytes */
    size_t room;            /* with what alignment adds */
    struct guard_event allocated;
    struct guard_event freed;
};

/* In the constructor: from now on one in policy.guard_bytes is sampled. */
void guard_start(void);

/* Where an address lies among the slots. */
struct guard_place {
    const struct guard_slot *slot; /* NULL: in none of them, nor beside one that was used */
    bool inside;                   /* its page; else one beside it */
};

/* False: nowhere near. Async-signal-safe. */
bool guard_find(uintptr_t address, struct guard_place *place);

#endif
