/* Which blocks the scenario has. */
#ifndef HAK_TEST_NOTES_H
#define HAK_TEST_NOTES_H

#include <stdint.h>

enum { NOTES = 1024 };

extern uint64_t notes[NOTES]; /* by distance from the range's base, in blocks: 1, if it is live */

#endif
