/*
 * The long form of a test: with --storm among its arguments a program goes on until HAK_TEST_STORM_SECONDS (600
 * without it in the environment) have passed; without, it does its work once.
 */
#ifndef HAK_TEST_STORM_H
#define HAK_TEST_STORM_H

#include <stdbool.h>

/* Reads the arguments; `seconds` is how long a test whose work is time takes without --storm, else 0. Takes
 * --storm out of them. */
void storm_begin(int *argc, char **argv, unsigned seconds);

/* How long the storm lasts, in seconds. */
unsigned storm_seconds(void);

/* Is there time for another round? */
bool storm_goes_on(void);

#endif
