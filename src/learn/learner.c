#include "learn/learner.h"

#include "config/policy.h"
#include "learn/contest.h"
#include "learn/notes.h"

/* Epochs of the champion before its cost is known well enough to choose a challenger by; the first of them, in which a program
 * starts, or goes over to something else, do not count. */
enum { WATCH_EPOCHS = 3, START_EPOCHS = 1 };

/* A match is four epochs of two delays, with up to one before each (learn.c). */
enum { DELAYS_PER_MATCH = 12 };

/* Of the time between two epochs' ends, at most so many times what the process has worked in it counts: the rest is a pause, in
 * which nothing was the same, or another. */
enum { PAUSED_PART = 8 };

/* What is seen of the champion is halved so often that it speaks of the last epochs. */
enum { SEEN_EPOCHS = 16 };

/* In FROZEN, epochs before a canary: fewest; twice as many after each that found nothing; most. */
enum { CANARY_FIRST = 16, CANARY_MOST = 512 };

/* And a quarter as many times as long as a match: some take long. */
enum { EPOCHS_PER_MATCH = 4 };

/* Epochs that led to nothing, because the program changed, since the last match that came to a result; then it is left
 * alone. */
enum { RESTLESS_MOST = 24 };

/* Epochs of the first rest, and how often it may double. */
enum { REST_FIRST = 64, REST_DOUBLED_MOST = 14 };

/* A program that changes again within so many epochs, and so much time, does by turns what one epoch should see all of: epochs
 * become twice as long, up to 2^STRETCH_MOST times. What lasts longer is a phase of its own, however long the epochs are. */
enum { SAME_LEAST = 64, SAME_LEAST_MS = 1280, STRETCH_MOST = 5 };

/* One that has been the same for so many epochs, or so much time, may do with shorter ones. */
enum { SAME_LONG = 128, SAME_LONG_MS = 2560 };

/* What observe mode says once. */
#define ESTIMATE_LEAST 0.01
enum { OBSERVE_EPOCHS = 16 };

static void go_to(struct learner *learner, enum learner_state state)
{
    if (state != learner->state)
        note_state(learner, state);
    learner->state = state;
}

/* `gain`: of the new champion against the old one (match.h). */
static void crown(struct learner *learner, unsigned arm, uint64_t evidence, double gain)
{
    note_change(learner, learner->champion, arm, evidence, gain);
    learner->champion = arm;
    learner->challenger = arm;
}

static void forget_costs(struct learner *learner)
{
    learner->seen = (struct epoch){0};
    learner->watched = 0;
    learner->champion_ns = 0;
    ledger_forget_costs(&learner->ledger);
}

static void learn_again(struct learner *learner)
{
    forget_costs(learner);
    contest_reopen(learner);
    learner->challenger = learner->champion;
    learner->audit_is_due = learner->champion != MODES_ARM;
    learner->canary_after = CANARY_FIRST;
    go_to(learner, LEARNER_LEARNS);
}

static void adapt_stretch(struct learner *learner)
{
    uint32_t same = learner->epochs - learner->same_since;
    uint64_t same_ms = learner->active_ms - learner->same_since_ms;
    if (same < SAME_LEAST && same_ms < SAME_LEAST_MS && learner->stretch < STRETCH_MOST)
        learner->stretch++;
    else if ((same >= SAME_LONG || same_ms >= SAME_LONG_MS) && learner->stretch > 0)
        learner->stretch--;
    learner->same_since = learner->epochs;
}

static void learn_of_new_phase(struct learner *learner)
{
    learner->drifts++;
    adapt_stretch(learner);
    learner->same_since_ms = learner->active_ms;
    ledger_forget_gain(&learner->ledger);
    learner->arms[learner->champion].proven = learner->champion != MODES_ARM ? learner->drifts : 0;
    learn_again(learner);
}

static void freeze(struct learner *learner)
{
    learner->challenger = learner->champion;
    learner->since_ms = learner->active_ms;
    go_to(learner, LEARNER_FROZEN);
}

static void kill_learning(struct learner *learner)
{
    uint32_t doubled = learner->kills < REST_DOUBLED_MOST ? learner->kills : REST_DOUBLED_MOST;
    learner->rest = (uint32_t)REST_FIRST << doubled;
    learner->kills++;
    note_kill(learner, learner->restless >= RESTLESS_MOST);
    crown(learner, MODES_ARM, learner->epochs, 0);
    ledger_clear(&learner->ledger);
    learner->restless = 0;
    go_to(learner, LEARNER_RESTS);
}

static void see(struct learner *learner, const struct epoch *epoch)
{
    if (learner->watched == START_EPOCHS)
        learner->seen = (struct epoch){0};
    if (learner->watched % SEEN_EPOCHS == SEEN_EPOCHS - 1)
        epoch_fade(&learner->seen);
    struct epoch worked = epoch_as_worked(epoch);
    epoch_add(&learner->seen, &worked);
    learner->watched++;
}

/* A program whose cost is a lower part of its own time is left alone: there is nothing to win. */
static bool is_worth_it(const struct learner *learner)
{
    double work = (double)learner->seen.work_ns;
    return work == 0 || (double)epoch_ns(&learner->seen) >= work * COST_LEAST_PART;
}

static bool has_challenger(const struct learner *learner)
{
    return learner->challenger != learner->champion;
}

static void drop_challenger(struct learner *learner)
{
    learner->arms[learner->challenger].judged = true;
    learner->failures++;
    if (learner->has_trial)
        tried_note(&learner->tried, &learner->trial);
    learner->has_trial = false;
    learner->challenger = learner->champion;
}

/* What a match has come to; VERDICT_OPEN: it goes on, or another of the same two does. */
static enum verdict play(struct learner *learner, const struct epoch *epoch)
{
    if (match_turn(&learner->match) == SIDE_A && !epoch->changed)
        see(learner, epoch);
    enum match_progress progress = match_add(&learner->match, epoch);
    if (progress == MATCH_VOID) {
        learner->restless += MATCH_EPOCHS;
        return VERDICT_VOID;
    }
    bool is_lost = contest_is_lost(learner);
    if (is_lost || progress == MATCH_OVER)
        learner->restless = 0;
    if (is_lost)
        return VERDICT_WORSE;
    if (progress == MATCH_GOES_ON)
        return VERDICT_OPEN;
    learner->match_ms = learner->active_ms - learner->match_since_ms;
    learner->match_since_ms = learner->active_ms;
    enum verdict verdict = contest_judge(learner);
    if (verdict == VERDICT_OPEN)
        match_begin(&learner->match, !learner->match.b_first);
    return verdict;
}

/* The challenger takes the champion's place. */
static void accept_challenger(struct learner *learner)
{
    double gain = contest_gain(learner);
    struct prospect back = learner->trial;
    back.up = !back.up;
    back.worth = 1;
    if (learner->has_trial)
        tried_note(&learner->tried, &back);
    learner->goes_on = learner->has_trial;
    learner->has_trial = false;
    learner->failures = 0;
    bool is_mode = learner->challenger == MODES_ARM;
    double before = learner->ledger.gain;
    crown(learner, learner->challenger, (uint64_t)learner->arms[learner->challenger].matches * MATCH_EPOCHS, gain);
    ledger_crown(&learner->ledger, is_mode ? 0 : before + gain);
    learner->seen = (struct epoch){0};
    learner->watched = START_EPOCHS + 1;
}

/* The champion was compared with the mode's values: either it has to go, or what it gains is known now. */
static void settle(struct learner *learner, enum verdict verdict)
{
    const struct arm *mode = &learner->arms[MODES_ARM];
    double gain = -mode->gains / mode->matches;
    learner->audit_is_due = false;
    /* A loss within the noise is none. */
    ledger_settle(&learner->ledger, gain < 0 && verdict != VERDICT_BETTER ? 0 : gain);
    if (verdict == VERDICT_BETTER) {
        learner->rollbacks++;
        learner->arms[learner->champion].judged = true;
        accept_challenger(learner);
    } else {
        learner->challenger = learner->champion;
    }
}

static bool can_audit(const struct learner *learner)
{
    return arm_delay_ms(&learner->arms[learner->champion], &learner->arms[MODES_ARM]) <= learner_patience_ms(learner);
}

/* Finds a match to play. False: there is none that promises anything. */
static bool begin_match(struct learner *learner)
{
    learner->match_since_ms = learner->active_ms;
    if (learner->audit_is_due && can_audit(learner)) {
        contest_audit(learner);
        return true;
    }
    return is_worth_it(learner) && contest_find(learner);
}

static void step_learning(struct learner *learner, const struct epoch *epoch)
{
    if (!has_challenger(learner)) {
        if (epoch->changed)
            learner->restless++;
        else
            see(learner, epoch);
        if (learner->watched >= WATCH_EPOCHS && ledger_may_try(&learner->ledger) && !begin_match(learner)) {
            drift_begin(&learner->drift);
            freeze(learner);
        }
        return;
    }
    enum verdict verdict = play(learner, epoch);
    if (verdict == VERDICT_OPEN)
        return;
    if (verdict == VERDICT_VOID)
        learn_of_new_phase(learner);
    else if (learner->challenger == MODES_ARM)
        settle(learner, verdict);
    else if (verdict == VERDICT_BETTER)
        accept_challenger(learner);
    else
        drop_challenger(learner);
}

/* In turn the mode's values, if they are not the champion's anyway, and something new: what was tried in vain once may be worth
 * it now. */
static bool begin_canary(struct learner *learner)
{
    learner->audits_next = !learner->audits_next;
    if (learner->champion != MODES_ARM && learner->audits_next)
        learner->audit_is_due = true;
    if (!learner->audit_is_due || !can_audit(learner)) {
        contest_reopen(learner);
        learner->retries = ARMS;
    }
    bool begins = begin_match(learner);
    learner->canaries += begins ? 1 : 0;
    return begins;
}

/* The same champion goes on: what its cost was before the canary is what is compared with. */
static void after_canary(struct learner *learner)
{
    learner->canary_after = learner->canary_after < CANARY_MOST ? learner->canary_after * 2 : CANARY_MOST;
    drift_go_on(&learner->drift);
    freeze(learner);
}

static bool is_time_for_canary(const struct learner *learner)
{
    uint64_t wait_ms = learner->match_ms * learner->canary_after / EPOCHS_PER_MATCH;
    return learner->drift.epochs >= learner->canary_after && learner->active_ms - learner->since_ms >= wait_ms
           && ledger_may_try(&learner->ledger);
}

static void step_frozen(struct learner *learner, const struct epoch *epoch)
{
    if (!epoch->changed)
        see(learner, epoch);
    if (drift_add(&learner->drift, epoch, contest_noise(learner))) {
        learn_of_new_phase(learner);
    } else if (is_time_for_canary(learner)) {
        if (begin_canary(learner))
            go_to(learner, LEARNER_CANARY);
        else
            after_canary(learner);
    }
}

static void step_canary(struct learner *learner, const struct epoch *epoch)
{
    enum verdict verdict = play(learner, epoch);
    unsigned before = learner->champion;
    bool is_audit = learner->challenger == MODES_ARM;
    if (verdict == VERDICT_OPEN)
        return;
    if (verdict == VERDICT_VOID) {
        learn_of_new_phase(learner);
        return;
    }
    if (is_audit) {
        settle(learner, verdict);
    } else if (verdict == VERDICT_BETTER) {
        accept_challenger(learner);
    } else {
        learner->rollbacks += verdict == VERDICT_WORSE ? 1 : 0;
        drop_challenger(learner);
    }
    if (verdict == VERDICT_BETTER) {
        learn_again(learner);
        learner->arms[before].judged = is_audit; /* it has just lost */
    } else {
        after_canary(learner);
    }
}

static void step_rest(struct learner *learner)
{
    if (--learner->rest > 0)
        return;
    learner->same_since = learner->epochs; /* nobody has looked whether it is the same program */
    learner->same_since_ms = learner->active_ms;
    learn_again(learner);
}

/* One change that promises enough, each once: nothing is tried. */
static void observe(struct learner *learner, const struct epoch *epoch)
{
    struct prospect prospects[PROSPECTS_MOST];
    const struct arm *champion = &learner->arms[learner->champion];
    if (drift_add(&learner->drift, epoch, contest_noise(learner))) {
        learner->drifts++;
        learner->tried.count = 0;
        forget_costs(learner);
        drift_begin(&learner->drift);
    }
    if (epoch->changed)
        return;
    see(learner, epoch);
    if (learner->watched % OBSERVE_EPOCHS != 0 || !is_worth_it(learner))
        return;
    unsigned count = evolution_prospects(prospects, champion, &learner->seen, learner->parts, learner_patience_ms(learner));
    const struct prospect *chosen = evolution_choose(prospects, count, &learner->tried, &learner->random);
    if (chosen == NULL || chosen->worth < ESTIMATE_LEAST)
        return;
    tried_note(&learner->tried, chosen);
    note_estimate(learner, chosen);
}

static enum ledger_force force(const struct learner *learner)
{
    if (learner->in_force == learner->champion)
        return learner->champion == MODES_ARM ? FORCE_MODE : FORCE_CHAMPION;
    return learner->in_force == MODES_ARM ? FORCE_AUDIT : FORCE_CHALLENGER;
}

static unsigned next_in_force(const struct learner *learner)
{
    return has_challenger(learner) && match_turn(&learner->match) == SIDE_B ? learner->challenger : learner->champion;
}

void learner_step(struct learner *learner, const struct epoch *epoch)
{
    /* Of the program before the first epoch, nothing is known; later, settling and pauses lie between epochs. */
    uint64_t ms = learner->epochs++ == 0 ? epoch->ms : epoch->end_ms - learner->now_ms;
    learner->now_ms = epoch->end_ms;
    learner->active_ms += epoch->work_ns == 0 ? ms : min_size(ms, epoch->work_ns * PAUSED_PART / 1000000);
    ledger_add(&learner->ledger, epoch, force(learner));
    if (learner->in_force == learner->champion) {
        learner->champion_ns = epoch_compared_ns(epoch);
        learner->champion_delay_ms = learner_delay_ms(learner);
    }
    if (learner->observes) {
        observe(learner, epoch);
        return;
    }
    switch (learner->state) {
    case LEARNER_LEARNS:
        step_learning(learner, epoch);
        break;
    case LEARNER_FROZEN:
        step_frozen(learner, epoch);
        break;
    case LEARNER_CANARY:
        step_canary(learner, epoch);
        break;
    case LEARNER_RESTS:
    case LEARNER_STATES:
        step_rest(learner);
        break;
    }
    if (learner->state != LEARNER_RESTS && (!ledger_has_paid(&learner->ledger) || learner->restless >= RESTLESS_MOST))
        kill_learning(learner);
    learner->in_force = next_in_force(learner);
}

void learner_begin(struct learner *learner, bool observes, unsigned parts, uint64_t seed)
{
    *learner = (struct learner){.observes = observes, .parts = parts, .random = seed | 1, .canary_after = CANARY_FIRST};
    contest_begin(learner);
    ledger_begin(&learner->ledger);
    learner->challenger = learner->in_force = learner->champion;
    learner->audit_is_due = learner->champion != MODES_ARM;
}

const struct arm *learner_arm(const struct learner *learner)
{
    return &learner->arms[learner->in_force];
}

uint64_t learner_delay_ms(const struct learner *learner)
{
    return arm_delay_ms(&learner->arms[learner->champion], &learner->arms[learner->challenger]);
}

uint64_t learner_patience_ms(const struct learner *learner)
{
    return (learner->active_ms - learner->same_since_ms) / DELAYS_PER_MATCH;
}

int64_t learner_saved_ppm(const struct learner *learner)
{
    return learner->ledger.worked > 0 ? (int64_t)(learner->ledger.saved / learner->ledger.worked * 1e6) : 0;
}

const char *learner_state_name(unsigned state)
{
    static const char names[LEARNER_STATES][7] = {
        [LEARNER_LEARNS] = "learns", [LEARNER_FROZEN] = "frozen", [LEARNER_CANARY] = "canary", [LEARNER_RESTS] = "rests"};
    return names[state % LEARNER_STATES];
}
