/*
 * Ratings of policies that compete: Elo's scale with the uncertainty of Glicko (M. Glickman, "Parameter estimation in large
 * paired comparison experiments", Applied Statistics 48, 1999). Pure arithmetic, without libm.
 *
 * A rating is a normal distribution of a policy's strength. A match moves it the further, the less was known of the policy
 * and the more of its opponent. What was learned grows old: a deviation grows again when the program changes.
 */
#ifndef HAK_LEARN_ELO_H
#define HAK_LEARN_ELO_H

#include <stdint.h>

#define ELO_FIRST 1500.0
#define ELO_DEVIATION_MOST 350.0
#define ELO_DEVIATION_LEAST 40.0

struct elo {
    double rating;
    double deviation;
    uint32_t matches;
};

/* Of a policy of which nothing is known; of one that was made by a small change of another. */
struct elo elo_unknown(void);
struct elo elo_of_child(const struct elo *parent);

/* The chance that a player with this rating beats the opponent, from 0 to 1. */
double elo_expected(double rating, const struct elo *opponent);

/* After a match: 0 lost, 1/2 drawn, 1 won, or anything between by how clear it was. Both are updated from what they were
 * before. */
void elo_match(struct elo *a, struct elo *b, double score_of_a);

/* The program has changed: what was learned counts less. */
void elo_forget(struct elo *elo);

/* What it may be worth at best: who is hardly known is worth a try. */
double elo_hope(const struct elo *elo);

#endif
