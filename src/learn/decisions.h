/*
 * What the learner has decided: the last 256 decisions, each with what is behind it. Any thread notes one, any reads them; no
 * lock, and nobody waits. One that is noted while 256 others are, or that is written over while it is read, is left out.
 */
#ifndef HAK_LEARN_DECISIONS_H
#define HAK_LEARN_DECISIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DECISIONS_KEPT = 256 };

enum decision_kind {
    DECIDED_KNOB,         /* what: enum knob */
    DECIDED_STATE,        /* what: enum learner_state */
    DECIDED_CLASS_OPENED, /* what: the class's id */
    DECIDED_CLASS_CLOSED,
    DECIDED_SITE,
    DECIDED_KILLED,       /* after: so many epochs of rest; index: 1 if the program is never the same for long */
};

/* Made of whole words, all of which are set. */
struct decision {
    uint64_t ms;       /* since the learner's start */
    uint32_t kind;     /* enum decision_kind */
    uint32_t what;
    uint64_t index;    /* of a knob with several values: a size class or a size bin */
    uint64_t before;
    uint64_t after;
    uint64_t evidence; /* epochs or samples behind it */
    int64_t gain;      /* what it is expected to save, in millionths of the cost */
    uint64_t subject;  /* the size of a class, the word of a site; of a knob, how many more of its values changed so */
    uint64_t applied;  /* 0: observe mode, where gain is an estimate from counts; nothing was tried */
};

void decision_note(const struct decision *decision);

/* How many there were ever, and that of a number from 0 up. False: it is not kept any more. */
uint64_t decisions_noted(void);
bool decision_get(uint64_t number, struct decision *to);

/* The latest, at most `most` of them, oldest first. Returns how many. */
size_t decisions_copy(struct decision *to, size_t most);

#endif
