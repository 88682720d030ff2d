/* span/span.h: runs of units, against a model of which grains are taken and what they hold. */
#include "span/span.h"

#include "check.h"
#include "fake_os.h"
#include "fuzz.h"
#include "grains.h"

enum { RUNS = 32, SMALL_MOST = 12, LARGE_SUPERSLABS = 3, ALIGNMENTS = 7, MS_MOST = 5000 };

static struct run {
    char *at; /* NULL: none */
    size_t grains;
    uint64_t mark;
    bool written;
} runs[RUNS];

static uint64_t marks;
static uint64_t now_ms = 1;
static size_t refused_bytes; /* at most so many stay as they are until there is another free beside them */

static void take_run(struct run *run, struct input *input)
{
    uint8_t kind = input_byte(input);
    size_t align = (size_t)1 << (kind % 4 == 0 ? input_below(input, ALIGNMENTS) : 0);
    size_t most = kind % 8 == 1 ? LARGE_SUPERSLABS * superslab_grains : SMALL_MOST;
    bool zero = false;
    run->grains = 1 + input_below(input, most);
    run->at = grains_take(run->grains, align, &zero);
    CHECK(run->at != NULL);
    CHECK((uintptr_t)run->at % (align * grain_bytes) == 0);
    size_t first = grain_of(run->at) % superslab_grains;
    CHECK(run->grains > superslab_grains ? first == 0 : first + run->grains <= superslab_grains);
    grains_mark_taken(run->at, run->grains, true);
    if (zero)
        grains_check_words(run->at, run->grains, 0);
    run->mark = ++marks;
    run->written = kind >= 64;
    if (run->written)
        grains_write_words(run->at, run->grains, run->mark);
}

/* From grain `first` on, which may be all of it. */
static void give_rest(struct run *run, size_t first)
{
    char *rest = run->at + first * grain_bytes;
    if (run->written)
        grains_check_words(run->at, run->grains, run->mark);
    grains_mark_taken(rest, run->grains - first, false);
    /* Not written by this run does not mean clean: it may hold what an earlier one wrote. */
    grains_give(rest, run->grains - first, true);
    run->grains = first;
    if (first == 0)
        run->at = NULL;
}

static void extend_run(struct run *run, struct input *input)
{
    size_t more = 1 + input_below(input, SMALL_MOST);
    char *end = run->at + run->grains * grain_bytes;
    bool zero = true;
    if (!grains_extend(end, more, &zero))
        return;
    grains_mark_taken(end, more, true);
    if (zero)
        grains_check_words(end, more, 0);
    if (run->written)
        grains_write_words(end, more, run->mark);
    run->grains += more;
}

/* All, or what is old, perhaps with a kernel that refuses. */
static void purge(struct input *input)
{
    struct span_stats before;
    struct span_stats after;
    uint8_t kind = input_byte(input);
    span_stats(&before);
    if (kind % 4 == 0)
        fake_os_refuse(FAKE_PURGE, 1 + input_below(input, 4), 1 + input_below(input, 4));
    now_ms += input_below(input, MS_MOST);
    size_t bytes = kind % 2 == 0 ? span_purge_all() : span_purge_old(now_ms, SIZE_MAX);
    bool refused = kind % 4 == 0 && fake_os_refused() > 0;
    fake_os_obey();
    span_stats(&after);
    CHECK(after.used_bytes == before.used_bytes);
    CHECK(bytes <= before.dirty_bytes && after.dirty_bytes <= before.dirty_bytes - bytes);
    if (refused)
        refused_bytes = after.dirty_bytes;
    if (!refused && kind % 2 == 0) {
        CHECK(after.dirty_bytes <= refused_bytes);
        refused_bytes = after.dirty_bytes;
    }
}

static void change(struct run *run, struct input *input)
{
    uint8_t kind = input_byte(input);
    if (kind % 16 == 0)
        purge(input);
    else if (run->at == NULL)
        take_run(run, input);
    else if (kind % 4 == 0)
        extend_run(run, input);
    else
        give_rest(run, kind % 4 == 1 ? input_below(input, run->grains) : 0);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    grains_init();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    while (input_has_more(&input)) {
        change(&runs[input_below(&input, RUNS)], &input);
        fake_clock_set(now_ms);
        grains_check_stats();
    }
    for (int i = 0; i < RUNS; i++)
        if (runs[i].at != NULL)
            give_rest(&runs[i], 0);
    CHECK(grains_taken() == 0);
    (void)span_purge_all(); /* so that the next finds what this one did */
    grains_check_stats();
    return 0;
}
