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

#endif
