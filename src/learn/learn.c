#include "learn/learn.h"

#include <stdbool.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/float_env.h"
#include "config/policy.h"
#include "heap/heap.h"
#include "learn/contest.h"
#include "learn/epoch_log.h"
#include "learn/fit.h"
#include "learn/learner.h"
#include "learn/signals.h"
#include "learn/sites.h"
#include "os/os.h"

/* An epoch's least length, by clock and in heartbeats' bytes. */
enum { EPOCH_MS = 20, EPOCH_BEATS = 8 };

/* After a change of policy, heartbeats that are waited for besides the time that it takes to show. */
enum { SETTLE_BEATS = 2 };

/* So that a policy that keeps something for a time shows what it does, an epoch lasts so many of those times. */
enum { EPOCH_DELAYS = 2 };

/* At the process's end, a thread that finds the learner at work waits so many ms. */
enum { ENTER_TRIES = 50 };

/* Guarded by `busy`. */
static struct {
    bool runs;
    enum learn learn;            /* what it was begun with: if the policy says another thing, it begins anew */
    unsigned parts;
    bool has_begun;              /* since the process began */
    uint32_t switches;           /* policy_switches */
    bool settles;                /* the epoch has not begun */
    uint64_t settled_ms;
    uint64_t delay_ms;           /* learner_delay_ms */
    unsigned settle_beats;
    uint64_t settle_bytes;
    struct arm in_force;
    struct learner learner;
    struct signals signals;
} self;

static uint64_t start_ms; /* of the process. Not above: each process writes it, most leave the rest alone */
static uint64_t forked_ms; /* since then: the fork that made it */
static uint32_t busy;

/* Of several threads one enters; nobody waits. */
static bool try_enter(void)
{
    uint32_t nobody = 0;
    return load_relaxed(&busy) == 0
           && __atomic_compare_exchange_n(&busy, &nobody, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void leave(void)
{
    store_release(&busy, 0u);
}

enum { WORDS = LEARN_WORDS, LOOKS_MOST = 100 };

struct learn_shown learn_shown;

static void show(const struct learn_summary *summary)
{
    uint64_t words[WORDS];
    memcpy(words, summary, sizeof words);
    store_relaxed(&learn_shown.sequence, learn_shown.sequence + 1);
    for (unsigned i = 0; i < WORDS; i++)
        store_release(&learn_shown.words[i], words[i]);
    store_release(&learn_shown.sequence, learn_shown.sequence + 1);
}

void learn_summary(struct learn_summary *summary)
{
    uint64_t words[WORDS];
    *summary = (struct learn_summary){0};
    for (int looks = 0; looks < LOOKS_MOST; looks++) {
        uint64_t before = load_acquire(&learn_shown.sequence);
        for (unsigned i = 0; i < WORDS; i++)
            words[i] = load_acquire(&learn_shown.words[i]);
        if (before % 2 == 0 && load_relaxed(&learn_shown.sequence) == before) {
            memcpy(summary, words, sizeof words);
            return;
        }
    }
}

static void show_now(void)
{
    const struct learner *learner = &self.learner;
    const struct arm *best = &learner->arms[learner->champion];
    double cost = learner->ledger.champion_cost;
    uint64_t arms = 0;
    for (unsigned i = 0; i < ARMS; i++)
        arms += learner->arms[i].made != 0 ? 1 : 0;
    show(&(struct learn_summary){
        .runs = self.runs ? (self.learn == LEARN_OBSERVE ? 2 : 1) : 0,
        .state = learner->state,
        .epochs = learner->epochs,
        .learn_ms = learner->now_ms - min_size(learner->now_ms, forked_ms),
        .mode_cost = (uint64_t)(cost * ledger_mode_by_champion(&learner->ledger)),
        .cost = (uint64_t)cost,
        .saved_ppm = learner_saved_ppm(learner),
        .arms = arms,
        .best_rating = (int64_t)best->elo.rating,
        .best_deviation = (uint64_t)best->elo.deviation,
        .changes = best->count,
        .matches = learner->matches,
        .drifts = learner->drifts,
        .canaries = learner->canaries,
        .rollbacks = learner->rollbacks,
        .kills = learner->kills,
    });
}

/* What the learner wants in force. */
static void put_in_force(const struct arm *arm, uint64_t now_ms)
{
    bool is_other = !arm_says_the_same(&self.in_force, arm);
    uint64_t shows_ms = arm_delay_ms(&self.in_force, arm); /* the match may be over */
    self.settles = is_other;
    if (is_other && self.learn == LEARN_ON)
        arm_switch(&self.in_force, arm);
    self.in_force = *arm;
    self.settle_beats = 0;
    self.settle_bytes = 0;
    self.delay_ms = learner_delay_ms(&self.learner);
    self.settled_ms = now_ms + shows_ms;
    if (!is_other)
        signals_begin(&self.signals, false, now_ms);
}

static bool is_as_begun(void)
{
    return self.runs && self.learn == load_relaxed(&policy.learn) && self.parts == load_relaxed(&policy.learn_parts)
           && self.switches == load_acquire(&policy_switches);
}

static bool is_other_mode(void)
{
    return self.has_begun && self.switches != load_acquire(&policy_switches);
}

/* What was learned before the mode was switched: an epoch's end may have put it in force meanwhile. */
static void undo_what_came_late(void)
{
    policy_restore();
    sites_reset();
}

/* With what is in force: it may have been loaded, or learned by the process that has forked this one. */
static void begin(uint64_t now_ms)
{
    uint32_t switches = load_acquire(&policy_switches);
    if (is_other_mode())
        undo_what_came_late();
    self.has_begun = true;
    self.switches = switches;
    self.learn = load_relaxed(&policy.learn);
    self.parts = load_relaxed(&policy.learn_parts);
    store_relaxed(&self.runs, self.learn != LEARN_OFF);
    learner_begin(&self.learner, self.learn == LEARN_OBSERVE, self.parts, os_random());
    self.in_force = *learner_arm(&self.learner);
    self.settles = true;
    self.settled_ms = now_ms;
    self.delay_ms = 0;
    self.settle_beats = 0;
    self.settle_bytes = 0;
    show_now();
}

static void settle(const struct heap *heap, uint64_t now_ms)
{
    self.settle_bytes += heap->beat_bytes;
    if (++self.settle_beats < SETTLE_BEATS || now_ms < self.settled_ms)
        return;
    self.settles = false;
    signals_begin(&self.signals, true, now_ms);
}

static void end_epoch(uint64_t now_ms)
{
    struct epoch epoch;
    signals_end(&self.signals, now_ms, start_ms, &epoch);
    epoch.settled = self.settle_bytes;
    if (load_relaxed(&policy_mode) == MODE_RESEARCH)
        epoch_log(&self.learner, &epoch);
    bool is_champions = self.learner.in_force == self.learner.champion;
    learner_step(&self.learner, &epoch);
    sites_epoch(epoch.end_ms, epoch_ns(&epoch), is_champions);
    put_in_force(learner_arm(&self.learner), now_ms);
    show_now();
}

static void measure(const struct heap *heap, uint64_t now_ms)
{
    uint64_t delay_ms = EPOCH_DELAYS * self.delay_ms;
    uint64_t usual_ms = (uint64_t)EPOCH_MS << self.learner.stretch;
    uint64_t least_ms = delay_ms > usual_ms ? delay_ms : usual_ms;
    uint64_t least_bytes = (EPOCH_BEATS * load_relaxed(&policy.heartbeat_bytes)) << self.learner.stretch;
    signals_beat(&self.signals, heap, now_ms);
    uint64_t ms = now_ms - self.signals.began_ms;
    uint64_t bytes = self.signals.sum.requested;
    if (!self.signals.is_halved && ms >= least_ms / 2 && bytes >= least_bytes / 2)
        signals_halve(&self.signals);
    bool is_long_enough = ms >= least_ms && bytes >= least_bytes;
    /* Who frees, and requests next to nothing, has heartbeats too: what that costs says nothing of each byte. */
    bool is_lost = bytes >= load_relaxed(&policy.heartbeat_bytes) && epoch_ns(&self.signals.sum) > contest_ns_most(&self.learner);
    if (is_long_enough || is_lost)
        end_epoch(now_ms);
}

void learn_start(void)
{
    start_ms = clock_now_ms();
    fit_follow_policy();
}

static bool is_at_work(void)
{
    return load_relaxed(&policy.learn) != LEARN_OFF || load_relaxed(&self.runs);
}

static NOINLINE void attend(const struct heap *heap)
{
    uint64_t now_ms = clock_now_ms();
    fit_at_heartbeat(now_ms - start_ms);
    if (is_at_work() && !is_as_begun())
        begin(now_ms);
    if (self.runs && self.settles)
        settle(heap, now_ms);
    if (self.runs && !self.settles)
        measure(heap, now_ms);
}

static COLD void beat(const struct heap *heap)
{
    if (!try_enter())
        return;
    struct float_env programs = float_env_begin();
    attend(heap);
    float_env_end(&programs);
    leave();
}

void learn_beat(struct heap *heap)
{
    if (is_at_work() || fit_is_alone(heap))
        beat(heap);
}

static void stop_trial(void)
{
    const struct arm *best = &self.learner.arms[self.learner.champion];
    if (self.learn == LEARN_ON)
        arm_switch(&self.in_force, best);
    self.in_force = *best;
}

/* The thread that was at work may be gone, and has left all half done: then it begins with what is in force, whatever that is.
 * */
void learn_forked(void)
{
    fit_forked();
    if (is_other_mode())
        undo_what_came_late();
    else if (load_relaxed(&busy) == 0 && self.runs)
        stop_trial();
    else if (load_relaxed(&self.runs) && self.learn == LEARN_ON)
        policy_restore();
    store_relaxed(&self.runs, false);
    forked_ms = clock_now_ms() - start_ms;
    store_relaxed(&learn_shown.sequence, 0u); /* who wrote it may be gone */
    show(&(struct learn_summary){0});   /* nothing of it is this process's own */
    leave();
}

/* Who is at work comes to an end soon, unless it is this very thread, below a signal handler that ends the process. */
static bool wait_and_enter(void)
{
    for (int tries = 0; !try_enter(); tries++) {
        if (tries == ENTER_TRIES)
            return false;
        os_sleep(1);
    }
    return true;
}

bool learn_show_best(void)
{
    if (!wait_and_enter())
        return false;
    if (is_other_mode()) {
        leave();
        return false;
    }
    if (is_as_begun()) {
        stop_trial();
        store_relaxed(&self.runs, false); /* and if the process goes on, it begins anew */
    }
    return true;
}

void learn_go_on(void)
{
    leave();
}
