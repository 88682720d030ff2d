/* What happens when the library is loaded. The heap needs none of it: the first operation of the first
 * thread starts that, however early it comes. */
#include <errno.h>
#include <unistd.h>

#include "api/learning.h"
#include "api/remember.h"
#include "api/route_trace.h"
#include "api/watch.h"
#include "base/atomic.h"
#include "base/fail.h"
#include "check/check.h"
#include "check/crash.h"
#include "check/guard.h"
#include "check/guard_report.h"
#include "config/options.h"
#include "config/policy.h"
#include "heap/events.h"
#include "heap/start.h"
#include "learn/learn.h"
#include "observe/profile.h"
#include "observe/stack.h"
#include "os/handler.h"
#include "span/limit.h"

/* Check mode serves all requests itself: none comes to the profiler. A constructor of the program's may have started it. */
static void start_profile(void)
{
    int error = profile_start(policy.profile_bytes);
    if (error == EALREADY)
        return;
    if (error == ENOTSUP)
        warn("HAKMEM_PROFILE: there is no profile in check mode");
    else if (error != 0)
        warn("HAKMEM_PROFILE: no profile, error %d", error);
    if (error != 0)
        policy.profile_bytes = 0;
}

/* What the program has set already, in a constructor that came before, stays. */
static void load_options(char **environment)
{
    const char *mode = load_relaxed(&policy_switches) != 0 ? policy_mode_name() : NULL;
    size_t soft = policy.soft_limit;
    size_t hard = policy.hard_limit;
    size_t profile = policy.profile_bytes;
    unsigned checks = policy.checks;
    options_load(environment);
    if (mode != NULL)
        (void)policy_switch_mode(mode);
    if (limit_is_set()) {
        policy.soft_limit = soft;
        policy.hard_limit = hard;
    }
    if (profile != 0)
        policy.profile_bytes = profile;
    if (checks != 0)
        policy.checks = checks;
}

static void forked(void)
{
    if (policy.checks != 0 || policy.profile_bytes != 0)
        stack_forked();
    crash_forked();
    guard_report_forked();
    learn_forked();
    watch_forked();
}

/* glibc's loader passes these; others leave `environ` ready. */
__attribute__((constructor)) static void start_up(int count, char **arguments, char **environment)
{
    (void)count;
    (void)arguments;
    start_expects_forks();
    os_find_sigaction();
    load_options(environ != NULL ? environ : environment);
    watch_start();
    learning_start();
    heap_events.forked = forked;
    if (policy.trace == TRACE_ROUTE)
        route_trace_start();
    if (policy.crash_reports || policy.checks != 0)
        crash_start();
    if (policy.checks != 0)
        check_start();
    else if (policy.guard_bytes > 0)
        guard_start();
    if (policy.profile_bytes > 0)
        start_profile();
    remember_start();
}
