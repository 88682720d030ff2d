/* Single steps: SIGTRAP after each instruction of the calling thread, wherever the processor can do that. */
#ifndef HAK_TEST_STEP_H
#define HAK_TEST_STEP_H

#include <stdbool.h>

/* False: this processor does not step itself. */
bool step_begin(void);
void step_end(void);

#endif
