#include "base/chance.h"

#include <string.h>

#define LN2 0.69314718055994530942
#define SQRT2 1.41421356237309504880

enum { MANTISSA_BITS = 52, EXPONENT_BIAS = 1023, UNIFORM_BITS = 53 };

/* x is normal and positive: a mantissa in [sqrt(1/2), sqrt(2)), and the power of two that it is times. */
static double split(double x, int *power)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *power = (int)(bits >> MANTISSA_BITS) - EXPONENT_BIAS;
    bits = (bits & (((uint64_t)1 << MANTISSA_BITS) - 1)) | (uint64_t)EXPONENT_BIAS << MANTISSA_BITS;
    memcpy(&x, &bits, sizeof x);
    if (x < SQRT2)
        return x;
    ++*power;
    return x / 2;
}

/* ln x = 2 artanh((x - 1) / (x + 1)). From sqrt(1/2) to sqrt(2) six terms are right to ten digits. */
static double ln_near_one(double x)
{
    double f = (x - 1) / (x + 1);
    double ff = f * f;
    return 2 * f * (1 + ff * (1. / 3 + ff * (1. / 5 + ff * (1. / 7 + ff * (1. / 9 + ff / 11)))));
}

/* -ln(n / 2^53) for n from 1 to 2^53. */
double chance_wait(uint64_t random)
{
    int power;
    double mantissa = split((double)((random >> (64 - UNIFORM_BITS)) + 1), &power);
    return (UNIFORM_BITS - power) * LN2 - ln_near_one(mantissa);
}

/* With e(x) = exp(-x) - 1: e(2x) = e(x) (e(x) + 2), and near 0 five terms of the series are right to nine digits. */
double chance_within(double x)
{
    int doublings = 0;
    if (x > 40)
        return 1;
    while (x > 1. / 16) {
        x /= 2;
        doublings++;
    }
    double e = -x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))));
    for (; doublings > 0; doublings--)
        e *= e + 2;
    return -e;
}
