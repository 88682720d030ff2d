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

/* ln x = 2 artanh((x - 1) / (x + 1)). From sqrt(1/2) to sqrt(2) ten terms are as exact as a double. */
static double ln_near_one(double x)
{
    double f = (x - 1) / (x + 1);
    double sum = 0;
    for (int odd = 19; odd > 0; odd -= 2)
        sum = sum * f * f + 1.0 / odd;
    return 2 * f * sum;
}

/* -ln(n / 2^53) for n from 1 to 2^53. */
double chance_wait(uint64_t random)
{
    int power;
    double mantissa = split((double)((random >> (64 - UNIFORM_BITS)) + 1), &power);
    return (UNIFORM_BITS - power) * LN2 - ln_near_one(mantissa);
}

/* With e(x) = exp(-x) - 1: e(2x) = e(x) (e(x) + 2), and near 0 eight terms of the series are as exact as a double. */
double chance_within(double x)
{
    int doublings = 0;
    if (x > 40)
        return 1;
    for (; x > 1.0 / 16; x /= 2)
        doublings++;
    double e = 0;
    for (int n = 8; n > 0; n--)
        e = (e + 1) * -x / n;
    for (; doublings > 0; doublings--)
        e *= e + 2;
    return -e;
}
