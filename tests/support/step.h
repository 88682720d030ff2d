/* Single steps: SIGTRAP after each instruction of the calling thread, wherever the processor can do that. */
#ifndef HAK_TEST_STEP_H
#define HAK_TEST_STEP_H

#include <stdbool.h>

/* False: this processor does not step itself. */
bool step_begin(void);
void step_end(void);

/*
 * Calls `action` once, from SIGTRAP's handler, after so many instructions of the calling thread, and steps no further; until
 * step_end. One thread at a time. False: this processor does not step itself.
 */
bool step_interrupt_after(int instructions, void (*action)(void));

/* Whether what step_interrupt_after has begun came to so many instructions. */
bool step_was_interrupted(void);

/*
 * After the first instruction of the calling thread, and each `every`-th from then on until step_end, the process divides: in the
 * child `action` is called, from SIGTRAP's handler, and nothing steps any further; it ends with code 0 where all went well, or the check
 * fails for the parent, which then goes on. No fork handler runs. One thread at a time. False: this processor does not step itself.
 */
bool step_divide_each(int every, void (*action)(void));

/* Of a child that step_divide_each has made, and those after it. */
bool step_has_divided(void);

/* How many instructions step_divide_each has seen so far. */
int step_count(void);

#endif
