#include "learn/contest.h"

#include "config/policy.h"

/* A gain that matters; and how many deviations it must be away from nothing. */
#define GAIN_LEAST 0.005
#define SURE 2.5

/* A clear result should be so many times what the match itself shows of noise. Else the match is played again, once. */
#define DOUBT 4.0

/* Without a clear result nobody plays longer; who does not even look better, not longer than the first. */
enum { MATCHES_LEAST = 2, MATCHES_MOST = 6 };

/* Children in a row that did not win, until it is enough. */
enum { FAILURES_MOST = 12 };

/* A challenger's first epoch that costs so much more than the champion's, and so many times the noise, has lost. */
#define LOST_LEAST 0.1
#define LOST_DEVIATIONS 8.0
#define LOST_MOST 1.0

/* Known arms that are tried again after the program has changed, if evolution finds new ones. */
enum { RETRIES_MOST = 3 };

/* What is taken for noise before anything is known; bounds of it; and how much the newest match counts. */
#define NOISE_FIRST 0.04
#define NOISE_LEAST 0.002
#define NOISE_MOST 1.0
#define NEWEST_PART 0.125

/* A normal deviation is so many times the mean size. */
#define DEVIATION_BY_MEAN 1.2533

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

double contest_noise(const struct learner *learner)
{
    return learner->noise * DEVIATION_BY_MEAN;
}

/* Evolution finds new ones; known ones that have lost once are tried again if they were best for another phase, or are rated
 * higher by now. */
static bool is_promising(const struct learner *learner, const struct arm *arm)
{
    return (learner->parts & LEARN_EVOLUTION) == 0 || arm->matches == 0 || arm->proven != 0
           || ((learner->parts & LEARN_ELO) != 0 && arm->elo.rating > learner->arms[learner->champion].elo.rating);
}

static bool may_play(const struct learner *learner, unsigned i)
{
    const struct arm *arm = &learner->arms[i];
    return arm->made != 0 && !arm->judged && is_promising(learner, arm) && i != learner->champion && i != MODES_ARM
           && !arm_says_the_same(arm, &learner->arms[learner->champion])
           && arm_delay_ms(arm, &learner->arms[learner->champion]) <= learner_patience_ms(learner);
}

/* What was best for another phase comes first: programs come back to what they did. Then by rating, or the newest. */
static bool comes_before(const struct learner *learner, const struct arm *a, const struct arm *b)
{
    if (a->proven != b->proven)
        return a->proven > b->proven;
    return (learner->parts & LEARN_ELO) != 0 ? elo_hope(&a->elo) > elo_hope(&b->elo) : a->made > b->made;
}

static bool find_known(struct learner *learner)
{
    unsigned best = ARMS;
    if ((learner->parts & LEARN_EVOLUTION) != 0 && learner->retries >= RETRIES_MOST)
        return false;
    for (unsigned i = 0; i < ARMS; i++)
        if (may_play(learner, i) && (best == ARMS || comes_before(learner, &learner->arms[i], &learner->arms[best])))
            best = i;
    if (best == ARMS)
        return false;
    learner->challenger = best;
    learner->has_trial = false;
    learner->retries++;
    return true;
}

/* The lowest rating, or the oldest; but what was best for another phase is kept as long as there is something else. */
static bool is_worse(const struct learner *learner, const struct arm *a, const struct arm *b)
{
    if (a->proven != b->proven)
        return a->proven < b->proven;
    return (learner->parts & LEARN_ELO) != 0 ? a->elo.rating < b->elo.rating : a->made < b->made;
}

/* A free place, or that of the worst. */
static unsigned place_for_child(const struct learner *learner)
{
    unsigned worst = ARMS;
    for (unsigned i = 1; i < ARMS; i++) {
        if (learner->arms[i].made == 0)
            return i;
        if (i != learner->champion && (worst == ARMS || is_worse(learner, &learner->arms[i], &learner->arms[worst])))
            worst = i;
    }
    return worst;
}

/* One more step where the last one has won, or one that promises something. */
static bool choose_trial(struct learner *learner, const struct arm *champion)
{
    struct prospect prospects[PROSPECTS_MOST];
    uint64_t patience_ms = learner_patience_ms(learner);
    bool goes_on = learner->goes_on && evolution_goes_on(champion, &learner->trial, patience_ms);
    learner->goes_on = false;
    if (goes_on)
        return true;
    unsigned count = evolution_prospects(prospects, champion, &learner->seen, learner->parts, patience_ms);
    const struct prospect *chosen = evolution_choose(prospects, count, &learner->tried, &learner->random);
    if (chosen != NULL)
        learner->trial = *chosen;
    return chosen != NULL;
}

static bool make_child(struct learner *learner)
{
    const struct arm *champion = &learner->arms[learner->champion];
    unsigned place = place_for_child(learner);
    if ((learner->parts & LEARN_EVOLUTION) == 0 || learner->failures >= FAILURES_MOST || !choose_trial(learner, champion))
        return false;
    evolution_make(&learner->arms[place], champion, &learner->trial);
    learner->arms[place].made = ++learner->made;
    learner->challenger = place;
    learner->has_trial = true;
    return true;
}

static void open_match(struct learner *learner)
{
    struct arm *challenger = &learner->arms[learner->challenger];
    challenger->gains = 0;
    challenger->matches = 0;
    challenger->doubted = false;
    match_begin(&learner->match, (learner->random >> 32 & 1) != 0);
}

bool contest_find(struct learner *learner)
{
    learner->random = next_xorshift(learner->random);
    if (!find_known(learner) && !make_child(learner))
        return false;
    open_match(learner);
    return true;
}

void contest_audit(struct learner *learner)
{
    learner->random = next_xorshift(learner->random);
    learner->challenger = MODES_ARM;
    learner->has_trial = false;
    open_match(learner);
}

bool contest_is_lost(struct learner *learner)
{
    const struct match *match = &learner->match;
    struct arm *challenger = &learner->arms[learner->challenger];
    double champions = match->cost[match->b_first ? 1 : 0];
    double challengers = match->cost[match->b_first ? 0 : 1];
    double much = LOST_DEVIATIONS * contest_noise(learner);
    much = much < LOST_LEAST ? LOST_LEAST : much > LOST_MOST ? LOST_MOST : much;
    if (match->played != 2 || champions <= 0 || challengers <= champions * (1 + much))
        return false;
    if (mix_differs(&match->mix[0], &match->mix[1])) /* a challenger changes no sizes: the program has */
        return false;
    elo_match(&challenger->elo, &learner->arms[learner->champion].elo, 0);
    challenger->gains -= 2 * (challengers - champions) / (challengers + champions);
    challenger->matches++;
    learner->matches++;
    return true;
}

uint64_t contest_ns_most(const struct learner *learner)
{
    if (learner->in_force == learner->champion || learner->champion_ns == 0)
        return UINT64_MAX;
    bool is_as_long = learner->champion_delay_ms == learner_delay_ms(learner);
    return is_as_long ? (uint64_t)((double)learner->champion_ns * (1 + LOST_MOST)) : UINT64_MAX;
}

/* Of the mean of its matches. */
static double variance(const struct learner *learner, const struct arm *arm)
{
    double noise = contest_noise(learner);
    return noise * noise * MATCH_VARIANCE / arm->matches;
}

/* A result that says much, of a match that was noisy itself: one epoch in it was out of the ordinary, most likely. */
static bool is_doubtful(const struct learner *learner, const struct match_result *result)
{
    double size = magnitude(result->gain);
    double noise = contest_noise(learner);
    return size * size > SURE * SURE * MATCH_VARIANCE * noise * noise && size < DOUBT * result->noise;
}

enum verdict contest_judge(struct learner *learner)
{
    struct arm *challenger = &learner->arms[learner->challenger];
    struct match_result result = match_result(&learner->match);
    double surprise = result.noise < NOISE_MOST ? result.noise : NOISE_MOST;
    bool is_in_doubt = is_doubtful(learner, &result) && !challenger->doubted;
    learner->matches++;
    learner->noise += (surprise - learner->noise) * NEWEST_PART;
    learner->noise = learner->noise > NOISE_LEAST ? learner->noise : NOISE_LEAST;
    if (is_in_doubt) {
        challenger->doubted = true;
        return VERDICT_OPEN;
    }
    double deviations = result.gain / contest_noise(learner);
    elo_match(&challenger->elo, &learner->arms[learner->champion].elo, 0.5 + deviations / (1 + magnitude(deviations)) / 2);
    challenger->gains += result.gain;
    challenger->matches++;

    double gain = challenger->gains / challenger->matches;
    double unsure = SURE * SURE * variance(learner, challenger);
    if (gain >= GAIN_LEAST && gain * gain >= unsure)
        return VERDICT_BETTER;
    if (gain < 0 && gain * gain >= unsure)
        return VERDICT_WORSE;
    bool promises = gain > 0 && gain * gain >= unsure / (SURE * SURE * 4); /* half a deviation */
    bool has_time = challenger->matches < (promises ? MATCHES_MOST : MATCHES_LEAST);
    return has_time ? VERDICT_OPEN : VERDICT_EQUAL;
}

/* Of several that were tried, the best looks better than it is. */
double contest_gain(const struct learner *learner)
{
    const struct arm *challenger = &learner->arms[learner->challenger];
    double gain = challenger->gains / challenger->matches;
    double noise = variance(learner, challenger);
    return gain * gain > noise ? gain * (1 - noise / (gain * gain)) : 0;
}

void contest_reopen(struct learner *learner)
{
    for (unsigned i = 0; i < ARMS; i++) {
        learner->arms[i].judged = false;
        elo_forget(&learner->arms[i].elo);
    }
    learner->tried.count = 0;
    learner->retries = 0;
    learner->failures = 0;
    learner->goes_on = false;
}

static unsigned add_presets(struct learner *learner, unsigned place)
{
    for (unsigned number = 0; place < ARMS && evolution_preset(&learner->arms[place], number, learner->parts); number++)
        if (learner->arms[place].count > 0)
            learner->arms[place++].made = ++learner->made;
    return place;
}

void contest_begin(struct learner *learner)
{
    unsigned place = 1;
    learner->noise = NOISE_FIRST / DEVIATION_BY_MEAN;
    for (unsigned i = 0; i < ARMS; i++)
        learner->arms[i] = (struct arm){.elo = elo_unknown()};
    learner->arms[MODES_ARM].made = ++learner->made;
    arm_of_knobs(&learner->arms[1]);
    if (learner->arms[1].count > 0) {
        learner->arms[1].made = ++learner->made;
        learner->champion = place++;
    }
    if ((learner->parts & LEARN_EVOLUTION) == 0)
        (void)add_presets(learner, place);
}
