#include "learn/policy_file.h"

#include <errno.h>

#include "base/fail.h"
#include "os/lines.h"
#include "os/output.h"
#include "os/program.h"
#include "os/scratch.h"

/* Of the file; and of a program's part: some hundred knobs and classes, and a line for each site. */
enum { FILE_MOST = 1024 * 1024, PART_MOST = 128 * 1024 };

/* All that is needed meanwhile, in pages of its own. */
struct work {
    struct os_program program;
    struct policy_key key;
    struct policy_found found;
    long length; /* of the text; below 0: no file, an error's number */
    struct output output;
    char text[FILE_MOST];
};

static struct work *work_begin(const char *path)
{
    struct work *work = scratch_take(sizeof *work);
    if (work == NULL) {
        warn("%s: no memory for the learned policy", path);
        return NULL;
    }
    return work;
}

static void work_read(struct work *work, const char *path)
{
    os_program(&work->program);
    work->key = (struct policy_key){work->program.path, work->program.build_id, work->program.bytes};
    work->length = file_load(path, work->text, sizeof work->text);
    if (work->length == 0) /* all that a failure of power may leave of a new file */
        work->length = -ENOENT;
    if (work->length >= 0)
        policy_text_read(work->text, (size_t)work->length, &work->key, &work->found);
}

static void work_end(struct work *work)
{
    scratch_drop(work, sizeof *work);
}

/* Is there a text, and is it sound? Says so if not; `so` is what follows from that. */
static bool is_usable(const struct work *work, const char *path, const char *so)
{
    if (work->length == -EFBIG)
        warn("%s: no learned policy: larger than 1 MiB; %s", path, so);
    else if (work->length < 0 && work->length != -ENOENT)
        warn("%s: cannot be read, error %ld; %s", path, -work->length, so);
    else if (work->length >= 0 && work->found.is == POLICY_DAMAGED)
        warn("%s: line %u: %s; %s", path, work->found.line, work->found.what, so);
    else
        return true;
    return false;
}

static bool load(struct work *work, const char *path, bool must_be)
{
    static const char so[] = "nothing is loaded";
    if (!is_usable(work, path, so))
        return false;
    if (work->length < 0) {
        if (must_be)
            warn("%s: no such file, or an empty one, and nothing learns; %s", path, so);
        return false;
    }
    if (work->found.is == POLICY_OF_OTHER_BUILD)
        warn("%s: learned by another build of %s; %s", path, work->key.path, so);
    if (work->found.is != POLICY_THERE)
        return false;
    policy_text_apply(work->text, &work->found);
    return true;
}

bool policy_file_load(const char *path, bool must_be, struct policy_evidence *evidence)
{
    *evidence = (struct policy_evidence){0};
    struct work *work = work_begin(path);
    if (work == NULL)
        return false;
    work_read(work, path);
    bool loaded = load(work, path, must_be);
    if (loaded)
        *evidence = work->found.evidence;
    work_end(work);
    return loaded;
}

static int save(struct work *work, const char *path, const struct policy_evidence *evidence)
{
    struct output *output = &work->output;
    const struct policy_found *found = &work->found;
    size_t before = found->begin;
    output_open_new(output, path);
    if (work->length < 0)
        policy_text_begin(&output->out);
    while (before > 0 && work->text[before - 1] == '\n')
        before--;
    out_write(&output->out, work->text, before);
    out_print(&output->out, before > 0 ? "\n\n" : "\n");
    policy_text_write(&output->out, &work->key, evidence, work->text, found->is == POLICY_THERE ? found : NULL);
    if (work->length > 0)
        out_write(&output->out, work->text + found->end, (size_t)work->length - found->end);
    return output_close(output, path);
}

/* What is written must be read again. */
static bool has_room(const struct work *work)
{
    size_t others = work->length > 0 ? (size_t)work->length - (work->found.end - work->found.begin) : 0;
    return others + PART_MOST <= FILE_MOST;
}

static void save_or_say(struct work *work, const char *path, const struct policy_evidence *evidence)
{
    bool is_known = work->key.path[0] == '/';
    int error = !is_known ? ENOENT : has_room(work) ? save(work, path, evidence) : EFBIG;
    if (!is_known)
        warn("%s: the system does not say which program this is; nothing is saved", path);
    else if (error == EFBIG)
        warn("%s: is full of what other programs have learned; nothing is saved", path);
    else if (error != 0)
        warn("%s: the learned policy cannot be written, error %d", path, error);
}

void policy_file_save(const char *path, const struct policy_evidence *evidence)
{
    if (output_is_special(path)) {
        warn("%s: no regular file; nothing is saved", path);
        return;
    }
    struct work *work = work_begin(path);
    if (work == NULL)
        return;
    int lock = output_lock(&work->output, path);
    work_read(work, path);
    bool has_more = work->length >= 0 && work->found.is == POLICY_THERE && work->found.evidence.epochs > evidence->epochs;
    if (!has_more && is_usable(work, path, "nothing is saved"))
        save_or_say(work, path, evidence);
    output_unlock(lock);
    work_end(work);
}
