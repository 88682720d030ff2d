#include "learn/match.h"

/* So many epochs in a row are thrown away before the match is. */
enum { THROWN_MOST = 3 };

/* An epoch that costs more than the process has worked in it, and took so many times as long as another, was a pause. */
enum { PAUSE_RATIO = 8 };

/* The same policy, in two epochs of one match: a cost that differs more is another phase's. */
#define COST_RATIO_MOST 3.0

void match_begin(struct match *match, bool b_first)
{
    *match = (struct match){.b_first = b_first};
}

enum match_side match_turn(const struct match *match)
{
    return (match->played % 2 != 0) != match->b_first ? SIDE_B : SIDE_A;
}

static bool is_far(double a, double b)
{
    return a > b * COST_RATIO_MOST || b > a * COST_RATIO_MOST;
}

static bool may_be_pause(const struct epoch *epoch)
{
    return epoch->work_ns != 0 && epoch_ns(epoch) > epoch->work_ns;
}

/* Of an epoch after the first. */
static bool is_pause(const struct match *match, const struct epoch *epoch)
{
    return may_be_pause(epoch) && epoch->ms > match->shortest_ms * PAUSE_RATIO;
}

static bool first_was_pause(const struct match *match, const struct epoch *second)
{
    return match->first_may_be_pause && match->shortest_ms > second->ms * PAUSE_RATIO;
}

static enum match_progress throw_away(struct match *match)
{
    return ++match->thrown_away > THROWN_MOST ? MATCH_VOID : MATCH_GOES_ON;
}

enum match_progress match_add(struct match *match, const struct epoch *epoch)
{
    if (epoch->changed || (match->played > 0 && is_pause(match, epoch)))
        return throw_away(match);
    if (match->played == 1 && first_was_pause(match, epoch)) {
        match->played = 0;
        return throw_away(match);
    }
    unsigned n = match->played++;
    match->thrown_away = 0;
    match->first_may_be_pause = n == 0 ? may_be_pause(epoch) : match->first_may_be_pause;
    match->shortest_ms = n == 0 || epoch->ms < match->shortest_ms ? epoch->ms : match->shortest_ms;
    match->cost[n] = epoch_compared_cost(epoch);
    match->mix[n] = mix_of(epoch->refills, epoch->large);
    if (n >= 2 && (mix_differs(&match->mix[n], &match->mix[n - 2]) || is_far(match->cost[n], match->cost[n - 2])))
        return MATCH_VOID;
    return match->played < MATCH_EPOCHS ? MATCH_GOES_ON : MATCH_OVER;
}

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

struct match_result match_result(const struct match *match)
{
    const double *c = match->cost;
    double first = (c[0] + c[2]) / 2;
    double second = (c[1] + c[3]) / 2;
    double e1 = c[1] - first;
    double e2 = second - c[2];
    double more = (e1 + e2) / 2; /* what the second side costs more than the first */
    double mean = (first + second) / 2;
    struct match_result result = {.a_cost = match->b_first ? second : first, .b_cost = match->b_first ? first : second};
    if (mean > 0) {
        result.gain = (match->b_first ? more : -more) / mean;
        result.noise = magnitude(e1 - e2) / mean;
    }
    return result;
}

/* A - B = gain (A + B) / 2. Nothing saves more than all: of costs that fall meanwhile more may be found. */
double match_share(double gain)
{
    double share = gain / (1 + gain / 2);
    return share < 1 ? share : 1;
}
