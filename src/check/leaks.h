/* Which live checked blocks nothing leads to any more. */
#ifndef HAK_CHECK_LEAKS_H
#define HAK_CHECK_LEAKS_H

/* Looks from globals, stacks, thread-local variables, registers and memory that the program has mapped, and on through the
 * blocks themselves; an address inside a block leads to it. Reports what is left, by where it was allocated. In
 * the door; takes the locks of all runs. */
void leaks_report(void);

#endif
