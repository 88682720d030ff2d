#include "api/stats_file.h"

#include "api/stats_json.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "config/policy.h"
#include "learn/decisions.h"
#include "os/out.h"
#include "os/scratch.h"

/* For where there is no memory. Small: this may run on the stack of a signal handler. */
enum { BUFFER_BYTES = 256 };

/* An object of many threads is longer: it is tried again with twice as much. */
#define FIRST_TRY (64 * KIB)

/* Of what was last appended only the beginning has been written: what comes next begins with a line of its own. */
static uint32_t is_torn;

struct object {
    const char *before;
    size_t decisions;
};

static void print(struct out *out, const struct object *object)
{
    out_print(out, "%s", object->before);
    stats_json(out, object->decisions);
}

/* False: `bytes` are too few. */
static bool write_whole(struct out *file, const struct object *object, char *text, size_t bytes)
{
    struct out out;
    out_to_memory(&out, text, bytes);
    print(&out, object);
    if (out_end(&out) != 0)
        return false;
    out_whole(file, text, out.length);
    return true;
}

/* Without memory, in pieces. */
static int write_object(struct out *file, const struct object *object)
{
    bool done = file->error != 0;
    for (size_t bytes = FIRST_TRY; !done; bytes *= 2) {
        char *text = scratch_take(bytes);
        if (text == NULL)
            print(file, object);
        done = text == NULL || write_whole(file, object, text, bytes);
        if (text != NULL)
            scratch_drop(text, bytes);
    }
    return out_end(file);
}

int stats_write(const char *path, bool append)
{
    char buffer[BUFFER_BYTES];
    struct object object = {"", append && policy.stats == STATS_SERIES ? DECISIONS_AGAIN : DECISIONS_KEPT};
    struct out out;
    if (append && load_relaxed(&is_torn) != 0)
        object.before = "\n";
    out_to_file(&out, path, append, buffer, sizeof buffer);
    int error = write_object(&out, &object);
    if (append && out.written > 0)
        store_relaxed(&is_torn, (uint32_t)(error != 0));
    return error;
}

int stats_write_to(int file)
{
    char buffer[BUFFER_BYTES];
    struct out out;
    out_to_open_file(&out, file, buffer, sizeof buffer);
    return write_object(&out, &(struct object){"", DECISIONS_KEPT});
}
