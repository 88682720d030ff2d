#include "observe/profile_dump.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/claim.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fmt.h"
#include "config/policy.h"
#include "heap/door.h"
#include "heap/fork.h"
#include "heap/profiler.h"
#include "observe/depot.h"
#include "observe/profile_memory.h"
#include "observe/profile_sites.h"
#include "os/build_id.h"
#include "os/os.h"
#include "os/output.h"
#include "os/program.h"
#include "os/scratch.h"

/* A profile at one moment, in memory of its own: to write it takes time, for which nobody should wait. */
struct snapshot {
    struct profile_totals totals;
    struct output output;
    struct build_ids ids;
    struct site sites[];
};

struct dump {
    const char *path;
    int error;
};

static size_t snapshot_bytes(uint32_t sites)
{
    return sizeof(struct snapshot) + sites * sizeof(struct site);
}

/* False: there are more sites than that by now. */
static bool copy(struct snapshot *snapshot, uint32_t room)
{
    lock_take(&profiler_lock);
    snapshot->totals = profile_totals;
    bool fits = snapshot->totals.sites <= room;
    for (uint32_t i = 0; fits && i < snapshot->totals.sites; i++)
        sites_copy(i, &snapshot->sites[i]);
    lock_drop(&profiler_lock);
    return fits;
}

static uint32_t count_sites(void)
{
    lock_take(&profiler_lock);
    uint32_t sites = profile_totals.sites;
    lock_drop(&profiler_lock);
    return sites;
}

/* NULL: no memory. Else of so many bytes. */
static struct snapshot *take_snapshot(size_t *bytes)
{
    for (;;) {
        uint32_t sites = count_sites();
        sites += sites / 8;
        *bytes = snapshot_bytes(sites);
        struct snapshot *snapshot = scratch_take(*bytes);
        if (snapshot == NULL || copy(snapshot, sites))
            return snapshot;
        scratch_drop(snapshot, *bytes);
    }
}

static void write_header(struct out *out, const struct profile_totals *totals)
{
    out_print(out, "heap profile: %lu: %lu [%lu: %lu] @ heap_v2/%zu\n", totals->live.count, totals->live.bytes,
                 totals->allocated.count, totals->allocated.bytes, totals->rate);
    uint64_t now_ms = clock_now_ms();
    uint64_t end_ms = totals->stopped_ms != 0 ? totals->stopped_ms : now_ms;
    uint64_t end = clock_unix_ms() - (now_ms - end_ms);
    out_print(out, "# hakmem-profile 1 pid=%d rate=%zu started_ms=%lu now_ms=%lu samples=%lu dropped=%lu", (int)getpid(),
                 totals->rate, end - (end_ms - totals->started_ms), end, totals->allocated.count, totals->dropped);
    out_print(out, " live_bytes=%lu peak_bytes=%lu memory=%zu\n", totals->live_weight, totals->peak_weight,
                 profile_bytes());
}

static void write_site(struct out *out, const struct site *site)
{
    size_t count;
    const uintptr_t *calls = depot_get(site->stack, &count);
    out_print(out, "%lu: %lu [%lu: %lu] @", site->live.count, site->live.bytes, site->allocated.count,
                 site->allocated.bytes);
    for (size_t i = 0; i < count; i++)
        out_print(out, " 0x%lx", calls[i]);
    out_print(out, "\n# peak %lu %lu lifetimes", site->peak.count, site->peak.bytes);
    for (int i = 0; i < LIFETIMES; i++)
        out_print(out, " %lu", site->lifetimes[i]);
    out_print(out, "\n");
}

static void write_build_id(uintptr_t start, const char *id, void *out)
{
    out_print(out, "# build-id 0x%lx %s\n", start, id);
}

static int write_snapshot(struct snapshot *snapshot, const char *path)
{
    struct output *output = &snapshot->output;
    output_open(output, path);
    write_header(&output->out, &snapshot->totals);
    for (uint32_t i = 0; i < snapshot->totals.sites; i++)
        write_site(&output->out, &snapshot->sites[i]);
    os_each_build_id(&snapshot->ids, write_build_id, &output->out);
    out_print(&output->out, "\nMAPPED_LIBRARIES:\n");
    if (!output_copy(output, os_own_file(OS_OWN_MAPS)))
        out_print(&output->out, "# no mappings\n");
    return output_close(output, path);
}

static void dump(void *argument)
{
    struct dump *wanted = argument;
    size_t bytes;
    struct snapshot *snapshot = take_snapshot(&bytes);
    if (snapshot == NULL) {
        wanted->error = ENOMEM;
        return;
    }
    wanted->error = snapshot->totals.profile == 0 ? ENODATA : write_snapshot(snapshot, wanted->path);
    scratch_drop(snapshot, bytes);
}

static uint32_t writer; /* the process that writes one */

enum { WAIT_MS = 10, WAITS_MOST = 500 };

int profile_dump(const char *path)
{
    struct dump wanted = {.path = path};
    if (fork_holds_any_lock())
        return EDEADLK;
    if (!claim_take(&writer))
        return EBUSY;
    door_visit(dump, &wanted);
    claim_drop(&writer);
    return wanted.error;
}

/* False: it does not fit. */
static bool expand(const char *pattern, char *path, size_t most)
{
    size_t used = 0;
    while (*pattern != '\0' && used + 1 < most) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            used += fmt_print(path + used, most - used, "%d", (int)getpid());
            pattern += 2;
        } else {
            path[used++] = *pattern++;
        }
    }
    path[used] = '\0';
    return *pattern == '\0';
}

int profile_dump_asked(void)
{
    if (policy.profile_path == NULL || load_relaxed(&current_profiler) == NULL)
        return 0;
    char *path = scratch_take(OUTPUT_PATH_MOST); /* not on the stack: a signal handler's may be small */
    int error = path == NULL ? ENOMEM : expand(policy.profile_path, path, OUTPUT_PATH_MOST) ? profile_dump(path) : ENAMETOOLONG;
    if (error != 0)
        warn("HAKMEM_PROFILE: the profile was not written to %s: error %d", path != NULL ? path : policy.profile_path, error);
    if (path != NULL)
        scratch_drop(path, OUTPUT_PATH_MOST);
    return error;
}

/* The program's own destructors have run, and those of most of its libraries. */
__attribute__((destructor)) static void at_exit(void)
{
    /* One that another thread is writing would be lost half done. */
    for (int waits = 0; waits < WAITS_MOST && claim_is_taken(&writer); waits++)
        os_sleep(WAIT_MS);
    (void)profile_dump_asked();
}
