/*
 * The learner: a state machine that is told of each epoch and says which policy is in force in the next. Pure: its time is the
 * epochs', its chance is seeded, and it changes nothing but itself, and the list of decisions.
 *
 *               ┌───── the program changes; a canary wins ──────┐
 *               ▼                                               │
 *   start ──▶ LEARNS ── nothing left that promises more ──▶ FROZEN ── now and then ──▶ CANARY
 *               ▲ │                                             ▲                        │
 *               │ │ has not paid for itself;                    └──── no better: back ───┘
 *     after a   │ │ the program is never the same for long
 *     rest      │ ▼
 *             RESTS     twice as long each time; the mode's own values meanwhile. From each state.
 *
 * LEARNS   The champion plays matches (match.h) against challengers: the mode's values first, if the program has
 *          changed, then arms that were good before, by rating, then children of the champion (evolution.h).
 * FROZEN   The champion is in force; whether the program is still the same is watched.
 * CANARY   One match: the mode's own values (is the champion still worth it?) and something new, in turn.
 *
 * In observe mode no arm is ever tried: it estimates from counts, and says so.
 */
#ifndef HAK_LEARN_LEARNER_H
#define HAK_LEARN_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

#include "learn/arms.h"
#include "learn/drift.h"
#include "learn/epoch.h"
#include "learn/evolution.h"
#include "learn/ledger.h"
#include "learn/match.h"

enum learner_state { LEARNER_LEARNS, LEARNER_FROZEN, LEARNER_CANARY, LEARNER_RESTS, LEARNER_STATES };

/* A number that is none of them is taken modulo how many there are. */
const char *learner_state_name(unsigned state);

enum { ARMS = 8, MODES_ARM = 0 };

struct learner {
    enum learner_state state;
    bool observes;
    unsigned parts;      /* of enum learn_part */
    uint64_t random;
    uint64_t now_ms;     /* of the epochs */
    uint64_t active_ms;  /* of them and of what lies between, without the process's pauses; of such are the times below */

    struct arm arms[ARMS];
    uint32_t made;       /* arms, so far */
    unsigned champion;
    unsigned challenger; /* the champion itself: no match is played */
    unsigned in_force;
    struct prospect trial; /* what sets the challenger apart, if evolution has just made it */
    bool has_trial;
    bool goes_on;        /* the last trial has won: the next step in its direction is tried first */
    unsigned failures;   /* challengers in a row that did not */
    struct match match;
    bool audit_is_due;   /* the program may have changed since the champion was compared with the mode's values */
    unsigned retries;    /* known arms that were tried again since the program changed */

    struct epoch seen;   /* the champion's, lately */
    unsigned watched;    /* epochs in it */
    uint64_t champion_ns; /* what its last epoch cost, as costs are compared; 0: not known */
    uint64_t champion_delay_ms; /* learner_delay_ms of that epoch, by which it lasted */
    double noise;        /* of an epoch's cost, as a share: the mean of its size */
    struct tried tried;
    struct ledger ledger;
    struct drift drift;
    bool audits_next;      /* whose turn the last canary was: the mode's values', or something new's */
    uint32_t canary_after; /* epochs in FROZEN, */
    uint64_t since_ms;     /* since when; */
    uint64_t same_since_ms; /* the program, as far as is known, */
    uint32_t same_since;   /* and in epochs */
    unsigned stretch;      /* epochs last 2^stretch times as long as at least: as long as what the program does over and over */
    uint64_t match_ms;     /* and how long the last match was */
    uint64_t match_since_ms;
    uint32_t restless;     /* epochs that led to nothing because the program changed */
    uint32_t rest;         /* epochs of it that are left */

    uint32_t epochs;
    uint32_t matches;
    uint32_t drifts;
    uint32_t canaries;
    uint32_t rollbacks;
    uint32_t kills;
};

/* Of what is in force now, which is where it begins: knob by knob the mode's values, or others that somebody has loaded. */
void learner_begin(struct learner *learner, bool observes, unsigned parts, uint64_t seed);

/* The epoch that has just ended; learner_arm was in force throughout. */
void learner_step(struct learner *learner, const struct epoch *epoch);

/* What is to be in force now. */
const struct arm *learner_arm(const struct learner *learner);

/* For how long a change between the policies of the match does not show (arms.h). */
uint64_t learner_delay_ms(const struct learner *learner);

/* The longest such time that is tried now: a match lasts about twelve of it, and should not last longer than the program has
 * been the same. */
uint64_t learner_patience_ms(const struct learner *learner);

/* By how much the program costs less than with the mode's values, in millionths of that cost: since the start, all that was
 * tried included. */
int64_t learner_saved_ppm(const struct learner *learner);

#endif
