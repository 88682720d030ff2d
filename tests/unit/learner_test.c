/* learn/learner.h: each transition of the state machine. */
#include "unit.h"

#include "learn/contest.h"
#include "learners.h"

static void begins_with_the_modes_values(void)
{
    begin(false, LEARN_ALL);
    CHECK(learner.state == LEARNER_LEARNS && learner_arm(&learner)->count == 0 && learner_delay_ms(&learner) == 0);
    step(&usual);
    CHECK(learner_arm(&learner)->count == 0); /* it looks first */
}

static void begins_with_what_was_loaded_and_audits_it(void)
{
    knob_set(KNOB_MAGAZINE_BYTES, CLASS, 131072);
    begin(false, LEARN_ALL);
    CHECK(arm_value(learner_arm(&learner), KNOB_MAGAZINE_BYTES, CLASS) == 131072);
    bool audited = false;
    for (int i = 0; i < 20; i++) {
        step(&usual);
        audited |= learner_arm(&learner) == &learner.arms[MODES_ARM];
    }
    CHECK(audited && width() >= 131072 && learner.ledger.gain > 0.15);
}

/* What the program was before it began is not known: nothing is tried yet that takes as long. */
static void a_late_beginning_is_one(void)
{
    begin(false, LEARN_ALL);
    now_ms = 3600 * 1000;
    step(&usual);
    CHECK(learner_patience_ms(&learner) < EPOCH_MS);
    for (int i = 0; i < 1000; i++)
        step(&usual);
    CHECK(learner_patience_ms(&learner) > EPOCH_MS && learner_patience_ms(&learner) < 1001 * EPOCH_MS);
}

/* In a pause the program is neither the same nor another: what takes long is not tried for its sake. */
static void pauses_are_no_time(void)
{
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    uint64_t patience_ms = learner_patience_ms(&learner);
    now_ms += 3600 * 1000;
    step(&usual);
    CHECK(learner_patience_ms(&learner) <= patience_ms + EPOCH_MS);
    (void)until(&usual, LEARNER_CANARY);
    struct epoch first = epoch_of(&usual);
    now_ms += 3600 * 1000;
    first.ms += 3600 * 1000;
    step_with(first);
    (void)until(&usual, LEARNER_FROZEN);
    CHECK(until(&usual, LEARNER_CANARY) < 200);
}

static void plays_pairs(void)
{
    begin(false, LEARN_ALL);
    int tried = 0;
    int known = 0;
    while (learner.matches == 0) {
        (learner_arm(&learner) == champion() ? known++ : tried++);
        step(&usual);
    }
    CHECK(tried == 2 && known >= 2);
}

static void learns_and_freezes(void)
{
    begin(false, LEARN_ALL);
    CHECK(until(&usual, LEARNER_FROZEN) < 200);
    CHECK(width() == knob_info[KNOB_MAGAZINE_BYTES].most && champion()->count == 1);
    CHECK(decided(DECIDED_KNOB, KNOB_MAGAZINE_BYTES) == 4 && decided(DECIDED_STATE, LEARNER_FROZEN) == 1);
    CHECK(learner_saved_ppm(&learner) > 100000);
    for (int i = 0; i < 10; i++) {
        CHECK(learner_arm(&learner) == champion());
        step(&usual);
    }
}

static void a_good_policy_stays(void)
{
    static const struct costs best = {.mode = 1000000, .doubling = 1.1, .other = 1.1};
    begin(false, LEARN_ALL);
    (void)until(&best, LEARNER_FROZEN);
    CHECK(champion()->count == 0 && learner.kills == 0 && decided(DECIDED_KNOB, KNOB_MAGAZINE_BYTES) == 0);
}

static void a_cheap_program_is_left_alone(void)
{
    static const struct costs cheap = {.mode = 19000, .doubling = 0.5, .other = 0.5}; /* less than a thousandth of 20 ms */
    begin(false, LEARN_ALL);
    CHECK(until(&cheap, LEARNER_FROZEN) < 6 && learner.matches == 0);
    for (int i = 0; i < 2000; i++) {
        step(&cheap);
        CHECK(learner_arm(&learner)->count == 0);
    }
}

/* A page fault now and then is many times what little such a program costs. */
static void beside_the_programs_own_time_next_to_nothing_is_no_change(void)
{
    static const struct costs nothing = {.mode = 2000, .doubling = 1, .other = 1};
    static const struct costs with_a_fault = {.mode = 4500, .doubling = 1, .other = 1};
    begin(false, LEARN_ALL);
    (void)until(&nothing, LEARNER_FROZEN);
    for (int i = 0; i < 2000; i++)
        step(i % 8 < 4 ? &with_a_fault : &nothing);
    CHECK(learner.drifts == 0 && learner.kills == 0);
}

static void another_cost_is_another_program(void)
{
    static const struct costs dearer = {.mode = 2000000, .doubling = 0.8, .other = 1.1};
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    for (int i = 0; i < 6; i++)
        step(&usual);
    CHECK(until(&dearer, LEARNER_LEARNS) <= 4 && learner.drifts == 1 && champion()->proven == 1);
    CHECK(learner.ledger.gain == 0); /* not known any more */
    (void)until(&dearer, LEARNER_FROZEN);
    CHECK(learner.ledger.gain > 0.5);
}

static void other_sizes_are_another_program(void)
{
    static const struct costs large = {.mode = 409600, .doubling = 1, .other = 1, .is_large = true};
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    for (int i = 0; i < 6; i++)
        step(&usual);
    CHECK(until(&large, LEARNER_LEARNS) <= 2 && learner.drifts == 1);
}

static void another_program_in_a_canary_is_learned_anew(void)
{
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    (void)until(&usual, LEARNER_CANARY);
    /* It costs as much as the first epoch, or the match is lost before it is void. */
    struct epoch first = epoch_of(&usual);
    const struct costs large = {.mode = first.ns[COST_REFILLS], .doubling = 1, .other = 1, .is_large = true};
    step_with(first);
    CHECK(until(&large, LEARNER_LEARNS) < MATCH_EPOCHS && learner.drifts == 1 && learner.rollbacks == 0);
}

/* What it costs more then is not the challenger's loss. */
static void another_program_between_the_first_epochs_of_a_canary(void)
{
    begin(false, LEARN_ALL);
    do {
        (void)until(&usual, LEARNER_FROZEN);
        (void)until(&usual, LEARNER_CANARY);
    } while (learner.match.b_first || learner.challenger == MODES_ARM);
    uint32_t rollbacks = learner.rollbacks;
    struct epoch first = epoch_of(&usual);
    const struct costs large = {.mode = 10 * first.ns[COST_REFILLS], .doubling = 1, .other = 1, .is_large = true};
    step_with(first);
    CHECK(until(&large, LEARNER_LEARNS) < MATCH_EPOCHS && learner.drifts == 1 && learner.rollbacks == rollbacks);
}

/* A canary is no new reference: a change during it would not be seen. */
static void what_has_changed_during_a_canary_is_seen_after_it(void)
{
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    (void)until(&usual, LEARNER_CANARY);
    struct costs dearer = usual;
    dearer.mode = usual.mode * 3 / 2;
    (void)until(&dearer, LEARNER_FROZEN);
    CHECK(until(&dearer, LEARNER_LEARNS) <= 4 && learner.drifts == 1);
}

/* Until the learner has seen that it is another program now; each epoch is `ms` long. */
static void another_program(bool is_large, uint64_t ms, int epochs)
{
    struct costs costs = usual;
    costs.is_large = is_large;
    for (int i = 0; i < epochs; i++) {
        now_ms += ms - EPOCH_MS;
        step(&costs);
    }
}

/* What comes by turns of a fifth of a second should be in one epoch; turns of three seconds are phases, also where epochs are long. */
static void only_short_turns_make_epochs_longer(void)
{
    begin(false, LEARN_ALL);
    for (int turn = 0; turn < 8; turn++)
        another_program(turn % 2 != 0, EPOCH_MS, 10);
    unsigned stretch = learner.stretch;
    CHECK(learner.drifts >= 2 && stretch >= 1);
    uint32_t drifts = learner.drifts;
    for (int turn = 0; turn < 8; turn++)
        another_program(turn % 2 != 0, 80, 40);
    CHECK(learner.drifts >= drifts + 3 && learner.stretch < stretch);
}

static void one_dear_epoch_is_none(void)
{
    static const struct costs dear = {.mode = 50000000, .doubling = 1, .other = 1};
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    for (int i = 0; i < 6; i++)
        step(&usual);
    step(&dear);
    for (int i = 0; i < 6; i++)
        step(&usual);
    CHECK(learner.drifts == 0 && learner.state == LEARNER_FROZEN);
}

static void canaries_come_ever_more_rarely(void)
{
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    int last = 0;
    for (int i = 0; i < 3; i++) {
        int epochs = until(&usual, LEARNER_CANARY);
        CHECK(epochs >= 16 && epochs > last);
        last = epochs;
        (void)until(&usual, LEARNER_FROZEN);
    }
    CHECK(learner.rollbacks + learner.canaries >= 3 && width() == knob_info[KNOB_MAGAZINE_BYTES].most);
}

/* The champion is no longer better than the mode's values, and nothing else shows it. */
static void a_champion_that_no_longer_pays_is_rolled_back(void)
{
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    unsigned was = learner.champion;
    struct costs turned = {.mode = (uint64_t)cost_of(&usual, champion()), .doubling = 1, .other = 1};
    for (int i = 0; i < 8; i++)
        step(&turned);
    turned.mode = turned.mode * 9 / 10;
    turned.doubling = 1.0267; /* 1 / 0.9 with four doublings */
    (void)until(&turned, LEARNER_LEARNS);
    CHECK(learner.drifts == 0 && learner.rollbacks == 1 && learner.champion == MODES_ARM);
    CHECK(learner_arm(&learner)->count == 0 && learner.ledger.gain == 0);
    CHECK(learner.arms[was].judged); /* and is not tried again at once */
}

static void a_canary_that_costs_more_changes_nothing(void)
{
    begin(false, LEARN_ALL);
    (void)until(&usual, LEARNER_FROZEN);
    struct arm before = *champion();
    while (learner.canaries < 4)
        step(&usual);
    (void)until(&usual, LEARNER_FROZEN);
    CHECK(arm_says_the_same(&before, champion()) && learner.state == LEARNER_FROZEN);
}

static void what_is_much_dearer_is_stopped_at_once(void)
{
    static const struct costs trap = {.mode = 1000000, .doubling = 1.5, .other = 1.5};
    int tried = 0;
    begin(false, LEARN_ALL);
    while (learner.matches == 0) {
        tried += learner_arm(&learner) == champion() ? 0 : 1;
        step(&trap);
    }
    CHECK(tried == 1 && learner_arm(&learner) == champion());
}

/* A trial need not go on once it has lost; the champion's epochs, and those of which nothing is known to compare with, go on. */
static void a_trial_that_has_lost_need_not_go_on(void)
{
    begin(false, LEARN_ALL);
    uint64_t fair = 2 * (usual.mode + 20000); /* twice the champion's epoch, with a thousandth of its time */
    bool tried = false;
    CHECK(contest_ns_most(&learner) == UINT64_MAX);
    while (learner.matches == 0) {
        bool is_trial = learner_arm(&learner) != champion();
        CHECK(contest_ns_most(&learner) == (is_trial ? fair : UINT64_MAX));
        tried |= is_trial;
        step(&usual);
    }
    CHECK(tried);
}

/* Where times are tried, an epoch lasts as long as they do. */
static void trials_are_compared_with_epochs_as_long(void)
{
    static const struct costs all_is_better = {.mode = 1000000, .doubling = 0.8, .other = 0.9};
    uint64_t champions_delay_ms = 0;
    unsigned stopped = 0;
    unsigned not_stopped = 0;
    begin(false, LEARN_ALL);
    for (int i = 0; i < LIMIT; i++) {
        struct epoch epoch = epoch_of(&all_is_better);
        uint64_t delay_ms = learner_delay_ms(&learner);
        epoch.ns[COST_FAULTS] = 500000;
        epoch.purged = 400 * 4096; /* so a longer delay is tried */
        CHECK(delay_ms <= learner_patience_ms(&learner));
        if (learner_arm(&learner) == champion()) {
            champions_delay_ms = delay_ms;
        } else {
            bool may_stop = contest_ns_most(&learner) != UINT64_MAX;
            CHECK(may_stop == (champions_delay_ms == delay_ms));
            stopped += may_stop;
            not_stopped += !may_stop;
        }
        step_with(epoch);
    }
    CHECK(stopped > 0 && not_stopped > 0);
}

static void a_restless_program_is_left_alone(void)
{
    static const struct costs other = {.mode = 1000000, .doubling = 0.8, .other = 1.1, .is_large = true};
    begin(false, LEARN_ALL);
    for (int i = 0; learner.kills == 0 && i < LIMIT; i++)
        step(i / 3 % 2 == 0 ? &usual : &other);
    CHECK(learner.state == LEARNER_RESTS && learner.restless == 0);
    (void)until(&usual, LEARNER_LEARNS);
    CHECK(learner_patience_ms(&learner) == 0); /* nobody has looked meanwhile */
    begin(false, LEARN_ALL);
    for (int i = 0; learner.kills == 0 && i < LIMIT; i++) {
        struct epoch epoch = epoch_of(&usual);
        epoch.changed = i > 10;
        step_with(epoch);
    }
    CHECK(learner.state == LEARNER_RESTS);
}

static void observing_changes_nothing(void)
{
    static struct decision decisions[DECISIONS_KEPT];
    begin(true, LEARN_ALL);
    for (int i = 0; i < 500; i++) {
        step(&usual);
        CHECK(learner_arm(&learner)->count == 0);
    }
    size_t count = decisions_copy(decisions, DECISIONS_KEPT);
    CHECK(count > 0 && decided(DECIDED_KNOB, KNOB_MAGAZINE_BYTES) == 1);
    for (size_t i = 0; i < count; i++)
        CHECK(decisions[i].applied == 0 && decisions[i].gain > 0 && decisions[i].kind == DECIDED_KNOB);
    CHECK(learner_saved_ppm(&learner) == 0 && learner.matches == 0);
}

static void without_evolution_presets_compete(void)
{
    begin(false, LEARN_ALL & ~(unsigned)LEARN_EVOLUTION);
    (void)until(&usual, LEARNER_FROZEN);
    CHECK(learner.matches >= 4 && champion()->count == 0); /* each of them costs a tenth more */
    static const struct costs good = {.mode = 1000000, .doubling = 1, .other = 0.8};
    begin(false, LEARN_ALL & ~(unsigned)LEARN_EVOLUTION);
    (void)until(&good, LEARNER_FROZEN);
    CHECK(champion()->count == 1);
}

static void without_ratings_it_learns_too(void)
{
    begin(false, LEARN_ALL & ~(unsigned)LEARN_ELO);
    (void)until(&usual, LEARNER_FROZEN);
    CHECK(width() == knob_info[KNOB_MAGAZINE_BYTES].most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(begins_with_the_modes_values),
        UNIT_TEST(begins_with_what_was_loaded_and_audits_it),
        UNIT_TEST(a_late_beginning_is_one),
        UNIT_TEST(pauses_are_no_time),
        UNIT_TEST(plays_pairs),
        UNIT_TEST(learns_and_freezes),
        UNIT_TEST(a_good_policy_stays),
        UNIT_TEST(a_cheap_program_is_left_alone),
        UNIT_TEST(beside_the_programs_own_time_next_to_nothing_is_no_change),
        UNIT_TEST(another_cost_is_another_program),
        UNIT_TEST(other_sizes_are_another_program),
        UNIT_TEST(another_program_in_a_canary_is_learned_anew),
        UNIT_TEST(another_program_between_the_first_epochs_of_a_canary),
        UNIT_TEST(what_has_changed_during_a_canary_is_seen_after_it),
        UNIT_TEST(only_short_turns_make_epochs_longer),
        UNIT_TEST(one_dear_epoch_is_none),
        UNIT_TEST(canaries_come_ever_more_rarely),
        UNIT_TEST(a_champion_that_no_longer_pays_is_rolled_back),
        UNIT_TEST(a_canary_that_costs_more_changes_nothing),
        UNIT_TEST(what_is_much_dearer_is_stopped_at_once),
        UNIT_TEST(a_trial_that_has_lost_need_not_go_on),
        UNIT_TEST(trials_are_compared_with_epochs_as_long),
        UNIT_TEST(a_restless_program_is_left_alone),
        UNIT_TEST(observing_changes_nothing),
        UNIT_TEST(without_evolution_presets_compete),
        UNIT_TEST(without_ratings_it_learns_too),
    };
    return cmocka_run_group_tests_name("learner", tests, NULL, NULL);
}
