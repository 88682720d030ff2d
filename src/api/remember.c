#include "api/remember.h"

#include "base/atomic.h"
#include "config/paths.h"
#include "config/policy.h"
#include "heap/door.h"
#include "heap/fork.h"
#include "learn/fit.h"
#include "learn/learn.h"
#include "learn/policy_file.h"

/* Of what was loaded: what is learned now comes on top of it. */
static struct policy_evidence known;
static bool is_loaded;
static uint32_t loaded_switches; /* of modes, until then: one after that takes what was loaded out of force */

static void load(void *path)
{
    is_loaded = policy_file_load(path, policy.learn != LEARN_ON, &known);
    loaded_switches = load_acquire(&policy_switches);
}

/* Size classes are opened behind the door, in a heap that has started. */
void remember_start(void)
{
    const char *path = path_of(PATH_POLICY);
    if (path[0] == '\0')
        return;
    (void)door_open();
    door_visit(load, (void *)(uintptr_t)path);
}

bool remember_has(struct policy_evidence *evidence)
{
    *evidence = known;
    return is_loaded;
}

/* What was saved is a mean over all epochs. */
static struct policy_evidence sum_of(const struct policy_evidence *before, const struct learn_summary *own)
{
    uint64_t epochs = before->epochs + own->epochs;
    uint64_t saved = own->saved_ppm > 0 ? (uint64_t)own->saved_ppm * own->epochs : 0;
    return (struct policy_evidence){
        .epochs = epochs,
        .seconds = before->seconds + own->learn_ms / 1000,
        .saved = epochs > 0 ? (before->saved * before->epochs + saved) / epochs : 0,
    };
}

static void save(void *path)
{
    struct learn_summary own;
    learn_summary(&own);
    if (own.epochs == 0 && !fit_has_opened())
        return;
    if (loaded_switches != load_acquire(&policy_switches))
        known = (struct policy_evidence){0};
    struct policy_evidence evidence = sum_of(&known, &own);
    if (!learn_show_best())
        return;
    policy_file_save(path, &evidence);
    learn_go_on();
}

/* Not if a signal handler ends the process that has interrupted the holder of a lock. */
__attribute__((destructor)) static void at_exit(void)
{
    const char *path = path_of(PATH_POLICY);
    if (path[0] != '\0' && load_relaxed(&policy.learn) == LEARN_ON && !fork_holds_any_lock())
        door_visit(save, (void *)(uintptr_t)path);
}
