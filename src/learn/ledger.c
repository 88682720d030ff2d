#include "learn/ledger.h"

#include "learn/match.h"
#include "learn/prices.h"

/* Of the process's own time, the part that tries may cost; and what may be saved up of it, ns. */
#define TRIES_PART 0.01
#define CREDIT_MOST 20e6

/* The first tries, before the process has worked for long. */
#define CREDIT_FIRST 1e6

enum { KILL_EPOCHS = 8 };

/* Nothing is believed to make a program more than seven times as cheap. */
#define GAIN_MOST 1.5

/* Of the last epochs' mean, what the newest one counts. */
#define NEWEST_PART 0.125

void ledger_begin(struct ledger *ledger)
{
    *ledger = (struct ledger){.credit = CREDIT_FIRST};
}

/* Where the process's time is not known, as much as the clock shows. */
static double work_of(const struct epoch *epoch)
{
    return epoch->work_ns != 0 ? (double)epoch->work_ns : (double)epoch->ms * 1e6;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double cost_of(const struct epoch *epoch)
{
    return least((double)epoch_ns(epoch), work_of(epoch));
}

static void book(struct ledger *ledger, double ns)
{
    ledger->saved += ns;
    ledger->balance = least(ledger->balance + ns, KILL_EPOCHS * ledger->epoch_ns);
}

/* With a gain g = 2 (m - c) / (m + c). */
double ledger_mode_by_champion(const struct ledger *ledger)
{
    return (1 + ledger->gain / 2) / (1 - ledger->gain / 2);
}

void ledger_add(struct ledger *ledger, const struct epoch *epoch, enum ledger_force force)
{
    bool is_try = force == FORCE_CHALLENGER || force == FORCE_AUDIT;
    double mib = (double)epoch->requested / (double)MIB;
    double ns = cost_of(epoch);
    /* What a try costs, it costs from when it is put in force; a pause, which is cut to the work, has no part in it. */
    bool is_settling = is_try && epoch->requested > 0 && (double)epoch_ns(epoch) <= work_of(epoch);
    double whole = is_settling ? 1 + (double)epoch->settled / (double)epoch->requested : 1;
    double champion_ns = is_try && ledger->champion_cost > 0 ? ledger->champion_cost * mib : ns;
    double mode_ns = force == FORCE_MODE || force == FORCE_AUDIT ? ns : champion_ns * ledger_mode_by_champion(ledger);
    ledger->epoch_ns += (mode_ns - ledger->epoch_ns) * (ledger->epoch_ns == 0 ? 1 : NEWEST_PART);
    ledger->worked += mode_ns;
    /* A try that costs less gives some back: of costs that go up and down by themselves as much is found above as below. */
    ledger->credit = least(ledger->credit + work_of(epoch) * TRIES_PART - (ns - champion_ns) * whole, CREDIT_MOST);
    if (is_try) {
        book(ledger, (mode_ns - ns) * whole - PRICE_EPOCH);
        return;
    }
    ledger->champion_cost = mib > 0 ? ns / mib : 0;
    ledger->unsettled += ns;
    ledger->claimed += mode_ns - ns;
    book(ledger, mode_ns - ns);
}

void ledger_crown(struct ledger *ledger, double gain)
{
    ledger->gain = least(gain, GAIN_MOST);
    ledger->unsettled = ledger->claimed = ledger->champion_cost = 0;
    ledger->settled = ledger->balance;
}

/* What was claimed too much is taken back; what was claimed too little was not known, and stays unclaimed. A champion that
 * still gains something has not lost anything: the balance is at its height then, whatever was claimed. One that does not has
 * cost what it lost since it was last known to gain; of what was claimed meanwhile the balance may have had no part. */
void ledger_settle(struct ledger *ledger, double gain)
{
    ledger->gain = least(gain, GAIN_MOST);
    double gained = ledger->unsettled * (ledger_mode_by_champion(ledger) - 1);
    if (ledger->claimed > gained)
        ledger->saved -= ledger->claimed - gained;
    if (gain < 0)
        ledger->balance = least(ledger->balance, ledger->settled) + gained;
    ledger->unsettled = ledger->claimed = 0;
    ledger->settled = ledger->balance;
}

void ledger_forget_gain(struct ledger *ledger)
{
    ledger->unsettled = ledger->claimed = ledger->gain = 0;
    ledger->settled = ledger->balance;
}

void ledger_forget_costs(struct ledger *ledger)
{
    ledger->champion_cost = 0;
}

bool ledger_may_try(const struct ledger *ledger)
{
    return ledger->credit > 0;
}

bool ledger_has_paid(const struct ledger *ledger)
{
    return ledger->balance >= -KILL_EPOCHS * ledger->epoch_ns;
}

void ledger_clear(struct ledger *ledger)
{
    ledger->balance = ledger->champion_cost = 0;
    ledger_forget_gain(ledger);
}
