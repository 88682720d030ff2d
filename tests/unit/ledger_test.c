/* learn/ledger.h: what trying may cost, and when learning has not paid for itself; by itself, and in a learner. */
#include "unit.h"

#include "learn/prices.h"
#include "learners.h"

static void claims_are_settled(void)
{
    struct ledger ledger;
    struct epoch epoch = {.requested = MIB, .ms = 20, .work_ns = 20000000};
    epoch.ns[COST_REFILLS] = 1000;
    ledger_begin(&ledger);
    ledger_add(&ledger, &epoch, FORCE_MODE);
    CHECK(ledger.saved == 0 && ledger.worked == 1000);
    ledger_crown(&ledger, 0.2); /* 1.1 / 0.9 */
    for (int i = 0; i < 9; i++)
        ledger_add(&ledger, &epoch, FORCE_CHAMPION);
    CHECK(ledger.saved > 1990 && ledger.saved < 2010);
    ledger_settle(&ledger, 0);
    CHECK(ledger.saved > -10 && ledger.saved < 10 && ledger_has_paid(&ledger));
    for (int i = 0; i < 1000; i++)
        ledger_add(&ledger, &epoch, FORCE_CHAMPION);
    ledger_settle(&ledger, -0.2); /* all the time it was a loss */
    CHECK(ledger.saved < -150000 && !ledger_has_paid(&ledger));
    ledger_clear(&ledger);
    CHECK(ledger_has_paid(&ledger));
}

/* A process that is stopped holds its memory as long, whoever plays. */
static void a_pause_is_no_loss(void)
{
    struct ledger ledger;
    struct epoch epoch = {.requested = MIB, .ms = 20, .work_ns = 20000000};
    epoch.ns[COST_DIRTY] = 100000;
    ledger_begin(&ledger);
    ledger_add(&ledger, &epoch, FORCE_MODE);
    ledger_crown(&ledger, 0.2);
    ledger_add(&ledger, &epoch, FORCE_CHAMPION);
    struct epoch paused = {.requested = MIB, .ms = 3600000, .work_ns = 200000};
    paused.ns[COST_DIRTY] = 18000000000;
    ledger_add(&ledger, &paused, FORCE_CHALLENGER);
    CHECK(ledger_has_paid(&ledger));
    for (int i = 0; i < 12; i++)
        ledger_add(&ledger, &paused, FORCE_CHALLENGER);
    CHECK(!ledger_has_paid(&ledger)); /* what it works counts */
    /* Nor has it been settling for as long. */
    ledger_begin(&ledger);
    ledger_add(&ledger, &epoch, FORCE_MODE);
    double balance = ledger.balance;
    paused.settled = 9 * MIB;
    ledger_add(&ledger, &paused, FORCE_CHALLENGER);
    CHECK(balance - ledger.balance < 300000);
    paused.settled = 0;
    /* Nor is it a saving of whoever plays next. */
    ledger_begin(&ledger);
    ledger_crown(&ledger, 0.2);
    ledger_add(&ledger, &paused, FORCE_CHAMPION);
    double saved = ledger.saved;
    ledger_add(&ledger, &epoch, FORCE_CHALLENGER);
    CHECK(ledger.saved - saved < 200000);
}

/* Nor does it say what memory costs while the process works. */
static void a_pause_counts_as_what_was_worked(void)
{
    struct epoch paused = {.requested = MIB, .ms = 3600000, .work_ns = 200000};
    paused.ns[COST_DIRTY] = 300000;
    paused.ns[COST_CALLS] = 100000;
    paused.held_ms[COST_DIRTY] = 1000;
    struct epoch worked = epoch_as_worked(&paused);
    CHECK(worked.ns[COST_DIRTY] == 150000 && worked.ns[COST_CALLS] == 50000 && worked.held_ms[COST_DIRTY] == 500);
    CHECK(worked.requested == MIB && worked.ms == 3600000);
    paused.work_ns = 400000;
    CHECK(epoch_ns(&paused) == 400000 && epoch_as_worked(&paused).ns[COST_DIRTY] == 300000);
    paused.work_ns = 0; /* not known */
    CHECK(epoch_as_worked(&paused).ns[COST_DIRTY] == 300000);
}

/* A challenger is in force, and costs, from before its epoch begins. */
static void tries_cost_while_they_settle(void)
{
    struct epoch epoch = {.requested = MIB, .ms = 20, .work_ns = 20000000};
    struct epoch try = {.requested = MIB, .settled = 2 * MIB, .ms = 20, .work_ns = 20000000};
    struct ledger settled, at_once;
    epoch.ns[COST_REFILLS] = 100000;
    try.ns[COST_REFILLS] = 400000;
    ledger_begin(&settled);
    ledger_add(&settled, &epoch, FORCE_MODE);
    at_once = settled;
    double credit = settled.credit;
    double earned = 0.01 * 20000000;
    ledger_add(&settled, &try, FORCE_CHALLENGER);
    try.settled = 0;
    ledger_add(&at_once, &try, FORCE_CHALLENGER);
    CHECK(settled.credit == credit + earned - 900000 && at_once.credit == credit + earned - 300000);
    CHECK(settled.saved == -900000 - PRICE_EPOCH && at_once.saved == -300000 - PRICE_EPOCH);
}

/* What it has saved before is not lost; nor was all that it was taken to save meanwhile. */
static void a_small_loss_after_a_long_gain_is_no_reason_to_stop(void)
{
    struct ledger ledger;
    struct epoch epoch = {.requested = MIB, .ms = 20, .work_ns = 20000000};
    epoch.ns[COST_REFILLS] = 100000;
    ledger_begin(&ledger);
    ledger_add(&ledger, &epoch, FORCE_MODE);
    ledger_crown(&ledger, 0.2);
    for (int i = 0; i < 1000; i++)
        ledger_add(&ledger, &epoch, FORCE_CHAMPION);
    ledger_settle(&ledger, 0.2);
    for (int i = 0; i < 100; i++)
        ledger_add(&ledger, &epoch, FORCE_CHAMPION);
    double saved = ledger.saved;
    ledger_settle(&ledger, -0.006);
    CHECK(ledger_has_paid(&ledger) && ledger.saved < saved - 100 * 20000);
}

/* Each try costs fifty times as much: a hundredth of the process's time, no more. What is priced higher than the process has worked
 * cannot have cost it more. */
static void tries_wait_for_credit(void)
{
    static const struct costs trap = {.mode = 1000000, .doubling = 50, .other = 50};
    double lost = 0;
    begin(false, LEARN_ALL);
    int epochs = 0;
    for (; learner.kills == 0 && epochs < LIMIT; epochs++) {
        struct epoch epoch = epoch_of(&trap);
        double cost = (double)epoch_ns(&epoch);
        double work = (double)epoch.work_ns;
        lost += (cost < work ? cost : work) - 1000000;
        step_with(epoch);
        CHECK(lost <= 0.01 * (double)now_ms * 1e6 + 52e6);
    }
    CHECK(lost > 0);
}

/* Whatever is tried costs a half more, and the program makes each look good first by being cheap: learning does not pay. */
static void learning_that_does_not_pay_is_killed(void)
{
    static const struct costs cheap = {.mode = 1000000, .doubling = 0.6, .other = 0.6};
    static const struct costs trap = {.mode = 1000000, .doubling = 1.9, .other = 1.9};
    begin(false, LEARN_ALL);
    int epochs = 0;
    uint32_t rest = 0;
    while (learner.kills < 3 && epochs++ < LIMIT * 20) {
        uint32_t kills = learner.kills;
        step(champion()->count > 0 ? &trap : &cheap);
        if (learner.kills != kills) {
            CHECK(learner.state == LEARNER_RESTS && learner_arm(&learner)->count == 0 && learner.rest >= 2 * rest);
            rest = learner.rest;
        }
    }
    CHECK(learner.kills == 3 && rest == 256 && decided(DECIDED_KILLED, LEARNER_LEARNS) > 0);
    CHECK(until(&usual, LEARNER_LEARNS) == 256);
    (void)until(&usual, LEARNER_FROZEN);
    CHECK(champion()->count > 0); /* and if it pays then, it learns */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(claims_are_settled),
        UNIT_TEST(a_pause_is_no_loss),
        UNIT_TEST(a_pause_counts_as_what_was_worked),
        UNIT_TEST(tries_cost_while_they_settle),
        UNIT_TEST(a_small_loss_after_a_long_gain_is_no_reason_to_stop),
        UNIT_TEST(tries_wait_for_credit),
        UNIT_TEST(learning_that_does_not_pay_is_killed),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
