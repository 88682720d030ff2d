/*
 * What learning costs and what it has brought, in ns. Two bounds rest on it:
 *
 *   credit    Trying a policy may cost at most a hundredth of the process's own time: each epoch adds that, what a policy
 *             costs more than the best one known takes it away, and while there is none nothing is tried.
 *   balance   Against the mode's own values: what is saved minus what was lost, never above what KILL_EPOCHS epochs cost. Below
 *             minus that learning has not paid for itself.
 *
 * An epoch in which the process was stopped costs what it has worked at most, whoever was in force: what it held meanwhile is
 * nobody's fault.
 *
 * Savings of a policy in force are claimed by the last comparison with the mode's values; the next one settles the claim.
 */
#ifndef HAK_LEARN_LEDGER_H
#define HAK_LEARN_LEDGER_H

#include <stdbool.h>

#include "learn/epoch.h"

struct ledger {
    double credit;
    double balance;
    double settled;    /* the balance when the champion was compared with the mode's values, or became it */
    double unsettled;  /* what the champion has cost since the last comparison with the mode's values, */
    double claimed;    /* and what it was taken to have saved */
    double epoch_ns;   /* what an epoch costs, lately */
    double champion_cost; /* ns for each MiB: of the best policy known, lately; 0: not known */
    double gain;       /* of that against the mode's values, as the last comparison says (match.h) */
    double saved;      /* in all: claimed or settled, less what was tried cost */
    double worked;     /* ns: what all epochs would have cost with the mode's values */
};

void ledger_begin(struct ledger *ledger);

enum ledger_force {
    FORCE_MODE,       /* the mode's own values, which are the best known */
    FORCE_AUDIT,      /* the same, where they are not */
    FORCE_CHAMPION,
    FORCE_CHALLENGER,
};

/* An epoch in which such a policy was in force. */
void ledger_add(struct ledger *ledger, const struct epoch *epoch, enum ledger_force force);

/* The champion is another; against the mode's values it gains so much, it is thought. */
void ledger_crown(struct ledger *ledger, double gain);

/* The champion was compared with the mode's values themselves. */
void ledger_settle(struct ledger *ledger, double gain);

/* The program has become another: what was claimed was of the old one, and what the champion gains now is not known. */
void ledger_forget_gain(struct ledger *ledger);

/* Costs are no longer known. */
void ledger_forget_costs(struct ledger *ledger);

/* What the mode's values cost, it is thought, for each ns that the champion costs. */
double ledger_mode_by_champion(const struct ledger *ledger);

bool ledger_may_try(const struct ledger *ledger);
bool ledger_has_paid(const struct ledger *ledger);

/* After a rest. */
void ledger_clear(struct ledger *ledger);

#endif
