/* Which blocks the scenario has. */
#ifndef HAK_TEST_NOTES_H
#define HAK_TEST_NOTES_H

#include <stdint.h>

enum { NOTES = 2048 };

extern uint64_t notes[NOTES]; /* by the unit in which it begins, which is no other's: 1, if it is live */

#endif
