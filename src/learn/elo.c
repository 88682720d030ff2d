#include "learn/elo.h"

#include "base/chance.h"

/* ln 10 / 400: with 400 points more a player wins ten times as often as it loses. */
#define Q 0.0057564627324851142
#define PI_SQUARED 9.8696044010893586

/* Of one change of the program, squared: three of them make a rating that was sure uncertain again. */
#define AGEING_SQUARED (120.0 * 120.0)

/* Of a child whose parent is sure: a change of one value moves the cost by a few per cent. */
#define CHILD_SQUARED (200.0 * 200.0)

/* Newton's steps from above, each of which doubles the digits that are right. x is from 1e-9 to 1e9. */
static double root(double x)
{
    double guess = x > 1 ? x : 1;
    for (int i = 0; i < 40; i++) {
        double next = (guess + x / guess) / 2;
        if (next >= guess)
            break;
        guess = next;
    }
    return guess;
}

static double clamp(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

struct elo elo_unknown(void)
{
    return (struct elo){.rating = ELO_FIRST, .deviation = ELO_DEVIATION_MOST};
}

static double widened(double deviation, double squared)
{
    return clamp(root(deviation * deviation + squared), ELO_DEVIATION_LEAST, ELO_DEVIATION_MOST);
}

struct elo elo_of_child(const struct elo *parent)
{
    return (struct elo){.rating = parent->rating, .deviation = widened(parent->deviation, CHILD_SQUARED)};
}

/* How much the result against an opponent that is not known well counts, from 0 to 1. */
static double weight(double deviation)
{
    return 1 / root(1 + 3 * Q * Q * deviation * deviation / PI_SQUARED);
}

/* 1 / (1 + exp(-x)) */
static double logistic(double x)
{
    double magnitude = x < 0 ? -x : x;
    double exp_of_minus = 1 - chance_within(magnitude);
    double upper = 1 / (1 + exp_of_minus);
    return x < 0 ? 1 - upper : upper;
}

double elo_expected(double rating, const struct elo *opponent)
{
    return logistic(weight(opponent->deviation) * Q * (rating - opponent->rating));
}

/* `other` is as it was before the match. */
static void update(struct elo *elo, const struct elo *other, double score)
{
    double g = weight(other->deviation);
    double expected = elo_expected(elo->rating, other);
    double information = Q * Q * g * g * expected * (1 - expected);
    double precision = 1 / (elo->deviation * elo->deviation) + information;
    elo->rating += Q / precision * g * (score - expected);
    elo->deviation = clamp(root(1 / precision), ELO_DEVIATION_LEAST, ELO_DEVIATION_MOST);
    elo->matches++;
}

void elo_match(struct elo *a, struct elo *b, double score_of_a)
{
    double score = clamp(score_of_a, 0, 1);
    struct elo before = *a;
    update(a, b, score);
    update(b, &before, 1 - score);
}

void elo_forget(struct elo *elo)
{
    elo->deviation = widened(elo->deviation, AGEING_SQUARED);
}

double elo_hope(const struct elo *elo)
{
    return elo->rating + 2 * elo->deviation;
}
