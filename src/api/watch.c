#include "api/watch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api/live.h"
#include "api/metrics.h"
#include "api/stats_file.h"
#include "api/stats_json.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "config/paths.h"
#include "config/policy.h"
#include "hakmem.h"
#include "heap/control.h"
#include "heap/door.h"
#include "heap/events.h"
#include "heap/fork.h"
#include "observe/profile_dump.h"
#include "os/handler.h"
#include "os/output.h"

enum { SERIES_MS = 1000, LIVE_MS = 200 };

/* Statistics are written again and again: one warning is enough. */
static COLD void warn_once(const char *path, int error)
{
    static uint32_t warned;
    if (__atomic_exchange_n(&warned, 1u, __ATOMIC_RELAXED) == 0)
        warn("HAKMEM_STATS: the statistics were not written to %s: error %d", path, error);
}

static void append_to(const char *path)
{
    int error = stats_write(path, true);
    if (error != 0)
        warn_once(path, error);
}

static struct output_identity error_file; /* at the start */

/* To where reports go; but not over what the program has opened since under stderr's number. */
static void write_report(void)
{
    const char *path = fail_report_file();
    if (path[0] != '\0')
        append_to(path);
    else if (output_overwrites_nothing(STDERR_FILENO, error_file))
        (void)stats_write_to(STDERR_FILENO);
}

static uint32_t report_is_wanted; /* by a signal: the statistics, and the profile if it has a file */

static void write_wanted(void)
{
    if (__atomic_exchange_n(&report_is_wanted, 0u, __ATOMIC_SEQ_CST) == 0)
        return;
    write_report();
    (void)profile_dump_asked();
}

static int purge(void)
{
    (void)hak_purge(HAK_PURGE_CACHED);
    return 0;
}

static int serve(uint32_t request, uint64_t argument, const char *path)
{
    switch (request) {
    case REQUEST_PROFILE_START:
        return hak_profile_start(argument);
    case REQUEST_PROFILE_STOP:
        return hak_profile_stop();
    case REQUEST_PROFILE_DUMP:
        return hak_profile_dump(path);
    case REQUEST_PURGE:
        return purge();
    case REQUEST_STATS:
        return stats_write(path, false);
    case REQUEST_MODE:
        return hak_mode_set(path);
    default:
        return ENOSYS;
    }
}

/* Its words may change at any time: what is used is a copy. */
static void serve_words(struct control_words *words)
{
    char path[CONTROL_PATH_MOST];
    uint32_t request = __atomic_exchange_n(&words->request, (uint32_t)REQUEST_NONE, __ATOMIC_SEQ_CST); /* see ask_for_report */
    if (request == REQUEST_NONE)
        return;
    uint64_t argument = load_relaxed(&words->argument);
    memcpy(path, words->path, sizeof path);
    path[sizeof path - 1] = '\0';
    store_relaxed(&words->result, serve(request, argument, path));
    store_release(&words->served, words->served + 1);
}

/* Outside the door, which what is asked for may have to enter. */
static void serve_asked(void)
{
    uint32_t elsewhere = REQUEST_ELSEWHERE;
    struct control_words *page = live_words();
    if (!__atomic_compare_exchange_n(&hak_control.words.request, &elsewhere, (uint32_t)REQUEST_NONE, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        serve_words(&hak_control.words);
    else if (page != NULL)
        serve_words(page);
    write_wanted();
}

/* Brings a thread to serve_asked; if a tool has asked for something just now, one comes anyway. */
static void ask_elsewhere(void)
{
    uint32_t nothing = REQUEST_NONE;
    (void)__atomic_compare_exchange_n(&hak_control.words.request, &nothing, (uint32_t)REQUEST_ELSEWHERE, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
}

/* Who may not read the process's memory asks on the page. The heartbeat is inside the door: it only passes that on. */
static void look_at_page(void)
{
    const struct control_words *page = live_update();
    if (page != NULL && load_relaxed(&page->request) != REQUEST_NONE)
        ask_elsewhere();
}

/* Is it time again? Of threads that come at once one is told so; who has read the clock before that one comes too early. */
static bool is_due(uint64_t *last_ms, uint64_t now_ms, uint64_t period_ms)
{
    uint64_t last = load_relaxed(last_ms);
    return clock_has_passed(now_ms, last, period_ms)
           && __atomic_compare_exchange_n(last_ms, &last, now_ms, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void watch_beat(void)
{
    static uint64_t series_ms;
    static uint64_t live_ms;
    if (policy.stats != STATS_SERIES && path_of(PATH_LIVE)[0] == '\0')
        return;
    uint64_t now = clock_now_ms();
    if (policy.stats == STATS_SERIES && is_due(&series_ms, now, SERIES_MS))
        append_to(path_of(PATH_STATS));
    if (path_of(PATH_LIVE)[0] != '\0' && (!live_is_own() || is_due(&live_ms, now, LIVE_MS)))
        look_at_page();
}

/* The next thread at the door writes it: a handler may have interrupted anything. All accesses to the two words are sequentially
 * consistent: if there is a request already, who takes it looks at the other word after that. */
static void ask_for_report(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    (void)__atomic_exchange_n(&report_is_wanted, 1u, __ATOMIC_SEQ_CST);
    ask_elsewhere();
}

static COLD void prepare_report(void)
{
    struct sigaction before;
    error_file = output_identify(STDERR_FILENO);
    if (policy.stats == STATS_BY_SIGNAL)
        os_set_handler(policy.stats_signal, ask_for_report, &before);
}

void watch_start(void)
{
    stats_begin();
    hak_control.metrics = metrics;
    hak_control.metric_bytes = sizeof metrics[0];
    hak_control.texts = metric_texts;
    hak_control.text_bytes = sizeof metric_texts[0];
    hak_control.bases = metric_bases;
    hak_control.base_count = (uint32_t)metric_base_count;
    store_release(&hak_control.metric_count, (uint32_t)metric_count);
    heap_events.asked = serve_asked;
    if (policy.stats == STATS_AT_EXIT || policy.stats == STATS_BY_SIGNAL)
        prepare_report();
    if (path_of(PATH_LIVE)[0] != '\0')
        (void)live_update();
}

/* What is asked for is asked of the parent. */
void watch_forked(void)
{
    live_forked();
    store_relaxed(&hak_control.words.request, (uint32_t)REQUEST_NONE);
    store_relaxed(&report_is_wanted, 0u);
}

static void write_last(void *argument)
{
    (void)argument;
    if (policy.stats == STATS_SERIES)
        append_to(path_of(PATH_STATS));
    else if (policy.stats == STATS_AT_EXIT)
        write_report();
}

/* Not if a signal handler ends the process that has interrupted the holder of a lock. */
__attribute__((destructor)) static void at_exit(void)
{
    bool is_watched = policy.stats != STATS_NEVER || path_of(PATH_LIVE)[0] != '\0';
    if (!is_watched || fork_holds_any_lock())
        return;
    door_visit(write_last, NULL);
    live_end();
}
