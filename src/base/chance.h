/* Waiting times: how far it is to the next event of a Poisson process, and how likely one is. Without libm; right to eight
 * digits at least. */
#ifndef HAK_BASE_CHANCE_H
#define HAK_BASE_CHANCE_H

#include <stdint.h>

/* An exponentially distributed number with mean 1, at most 37, made of 64 random bits. */
double chance_wait(uint64_t random);

/* The probability that the wait is at most x: 1 - exp(-x). x is not negative. */
double chance_within(double x);

#endif
