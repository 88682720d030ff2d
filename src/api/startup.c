/* What happens when the library is loaded. The heap needs none of it: the first operation of the first
 * thread starts that, however early it comes. */
#include <unistd.h>

#include "api/watch.h"
#include "check/check.h"
#include "check/crash.h"
#include "check/guard.h"
#include "config/options.h"
#include "config/policy.h"

/* glibc's loader passes these; others leave `environ` ready. */
__attribute__((constructor)) static void start_up(int count, char **arguments, char **environment)
{
    (void)count;
    (void)arguments;
    options_load(environ != NULL ? environ : environment);
    watch_start();
    if (policy.crash_reports || policy.checks != 0)
        crash_start();
    if (policy.checks != 0)
        check_start();
    else if (policy.guard_bytes > 0)
        guard_start();
}
