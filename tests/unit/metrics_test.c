/* api/metrics.h and api/stats_json.h: what is counted, against a model of what was done. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/metrics.h"
#include "api/stats_json.h"
#include "config/knobs.h"
#include "config/policy.h"
#include "fake_os.h"

#include "heap/magazine.h"
#include "heap/mail.h"
#include "learn/decisions.h"
#include "heaps.h"
#include "random.h"

enum { MODEL_BLOCKS = 4000, OPERATIONS = 60000, TEXT_BYTES = 64 * 1024 };

static uint64_t sum_of(const char *name)
{
    for (size_t i = 0; i < metric_count; i++)
        if (strcmp(metric_texts[i].name, name) == 0)
            return metric_sum(&metrics[i]);
    CHECK(!"there is such a metric");
    return 0;
}

static void each_is_named_once_and_explained(void)
{
    for (size_t i = 0; i < metric_count; i++) {
        const struct metric *m = &metrics[i];
        const struct metric_text *text = &metric_texts[i];
        CHECK(strlen(text->name) > 0 && strlen(text->about) > 0 && m->count > 0 && m->scale > 0);
        CHECK(m->width == 4 || m->width == 8);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(metric_texts[j].name, text->name) != 0);
    }
}

/* The parts of what is held, which the chart stacks, are all of it. */
static void check_parts(const struct hak_stats *stats)
{
    size_t slabs = stats->small_bytes + stats->cached_bytes + stats->slab_free_bytes + stats->hole_bytes;
    CHECK(slabs == sum_of("slab_bytes"));
    CHECK(stats->large_bytes == sum_of("large_live_bytes"));
    size_t absent = sum_of("hole_bytes") + sum_of("stock_clean_bytes") + sum_of("untouched_bytes") + sum_of("fence_bytes");
    CHECK(stats->held_bytes + absent == sum_of("charged_bytes") + sum_of("metadata_bytes"));
    CHECK(sum_of("used_bytes") >= slabs + stats->bigcache_bytes);
}

struct model {
    void *block[MODEL_BLOCKS];
    size_t size[MODEL_BLOCKS];
    size_t requested;
    size_t small_blocks;
    size_t small_bytes; /* of classes */
    size_t large_blocks;
};

static void take(struct model *model, unsigned i, size_t size)
{
    model->block[i] = hak_malloc(size);
    model->size[i] = size;
    model->requested += size;
    CHECK(model->block[i] != NULL);
    if (size > SMALL_MAX) {
        model->large_blocks++;
        return;
    }
    model->small_blocks++;
    model->small_bytes += size_classes[size_class_of(size)].size;
}

static void drop(struct model *model, unsigned i)
{
    hak_free(model->block[i]);
    model->block[i] = NULL;
    if (model->size[i] > SMALL_MAX) {
        model->large_blocks--;
        return;
    }
    model->small_blocks--;
    model->small_bytes -= size_classes[size_class_of(model->size[i])].size;
}

static void live_and_requested_are_exact(void)
{
    static struct model model;
    struct hak_stats stats;
    uint64_t state = 11;
    for (int i = 0; i < OPERATIONS; i++) {
        unsigned at = (unsigned)random_below(&state, MODEL_BLOCKS);
        if (model.block[at] != NULL)
            drop(&model, at);
        else
            take(&model, at, random_below(&state, 100) == 0 ? (40 << 10) + random_below(&state, 1 << 18) : random_below(&state, 3000));
        if (i % 5000 != 0)
            continue;
        CHECK(hak_stats_get(&stats, sizeof stats) == 0);
        CHECK(stats.requested_bytes == model.requested);
        CHECK(stats.small_blocks == model.small_blocks && stats.small_bytes == model.small_bytes);
        CHECK(stats.large_blocks == model.large_blocks);
        check_parts(&stats);
    }
    CHECK(stats.refills > 0 && stats.flushes > 0);
}

/* Each refill is served by one stage at least, and by the first that has blocks. */
static void stages_are_counted(void)
{
    struct heap *heap = heap_own();
    uint64_t before = sum_of("served_by_new_slab");
    unsigned class = size_class_of(4000);
    uint32_t blocks = size_classes[class].blocks;
    void **block = malloc(2 * blocks * sizeof *block);
    for (uint32_t i = 0; i < 2 * blocks; i++)
        block[i] = hak_malloc(4000);
    CHECK(sum_of("served_by_new_slab") == before + 2);
    CHECK(load_relaxed(&heap->counts->slabs[class]) == 2);
    CHECK(load_relaxed(&heap->counts->refills[class]) > 0);
    uint64_t again = sum_of("served_by_partial_slab") + sum_of("served_by_current_slab");
    for (uint32_t i = 0; i < 2 * blocks; i += 2)
        hak_free(block[i]);
    magazine_flush_all(heap);
    for (uint32_t i = 0; i < blocks / 2; i++)
        block[i] = hak_malloc(4000);
    CHECK(sum_of("served_by_new_slab") == before + 2);
    CHECK(sum_of("served_by_partial_slab") + sum_of("served_by_current_slab") > again);
    free(block);
}

static void mail_is_counted(void)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    enum { SENT = 100 };
    void *block[SENT];
    for (int i = 0; i < SENT; i++)
        block[i] = magazine_pop(other, size_class_of(64));
    for (int i = 0; i < SENT; i++)
        hak_free(block[i]);
    mail_post_all(own);
    CHECK(own->counts->of[COUNT_SENT] == SENT && sum_of("remote_sent_blocks") == SENT);
    CHECK(sum_of("remote_letters") > 0 && sum_of("remote_received_blocks") == 0);
    mail_collect(other, true);
    CHECK(other->counts->of[COUNT_RECEIVED] == SENT && sum_of("remote_received_blocks") == SENT);
    CHECK(sum_of("remote_forwarded_blocks") == 0);
}

static void large_blocks_are_counted(void)
{
    uint64_t served = sum_of("large_from_bigcache");
    for (int i = 0; i < 10; i++)
        hak_free(hak_malloc(1 << 20));
    CHECK(sum_of("large_blocks") == 10 && sum_of("large_frees") == 10);
    CHECK(sum_of("large_from_bigcache") == served + 9);
}

static void what_is_given_back_is_counted(void)
{
    struct hak_stats before;
    struct hak_stats after;
    enum { BLOCKS = 3000 };
    static char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        block[i] = memset(hak_malloc(1000), 1, 1000);
    for (int i = 0; i < BLOCKS; i++)
        if (i % 500 != 0)
            hak_free(block[i]);
    CHECK(hak_stats_get(&before, sizeof before) == 0);
    size_t bytes = hak_purge(HAK_PURGE_CACHED);
    CHECK(hak_stats_get(&after, sizeof after) == 0);
    CHECK(bytes > 0 && after.purged_bytes == before.purged_bytes + bytes);
    CHECK(after.hole_bytes > 0);
    check_parts(&after);
}

static void newer_callers_get_zeros(void)
{
    struct {
        struct hak_stats known;
        size_t unknown;
    } later = {.unknown = 7};
    struct hak_stats stats;
    (void)heap_own();
    CHECK(hak_stats_get((struct hak_stats *)&later, sizeof later) == 0);
    CHECK(later.known.committed_bytes > 0 && later.unknown == 0);
    memset(&stats, 1, sizeof stats);
    CHECK(hak_stats_get(&stats, sizeof stats.small_blocks) == 0);
    CHECK(stats.small_blocks != 0x0101010101010101 && stats.small_bytes == 0x0101010101010101);
    CHECK(hak_stats_get(NULL, sizeof stats) == EINVAL && hak_stats_get(&stats, 0) == EINVAL);
}

/* Balanced, with no comma at a wrong place; what it says is looked at by tests/py/test_stats.py. */
static void json_is_balanced(void)
{
    static char text[TEXT_BYTES];
    struct out out;
    int depth = 0;
    (void)heap_own();
    knob_set(KNOB_PURGE_MS, 0, 5);
    knob_set(KNOB_BIGCACHE_MS, 2, 5);
    for (uint32_t i = 0; i < 3; i++)
        decision_note(&(struct decision){.kind = DECIDED_KNOB, .what = i});
    out_to_memory(&out, text, sizeof text);
    stats_json(&out, DECISIONS_KEPT);
    CHECK(out_end(&out) == 0 && text[out.length - 1] == '\n');
    for (size_t i = 0; i < out.length; i++) {
        depth += (text[i] == '{' || text[i] == '[') - (text[i] == '}' || text[i] == ']');
        CHECK(depth > 0 || i + 2 >= out.length);
        CHECK(text[i] != ',' || strchr("\"{", text[i + 1]) != NULL);
    }
    CHECK(depth == 0);
}

static void short_memory_is_told(void)
{
    char text[100];
    struct out out;
    (void)heap_own();
    knob_set(KNOB_PURGE_MS, 0, 5);
    knob_set(KNOB_BIGCACHE_MS, 2, 5);
    for (uint32_t i = 0; i < 3; i++)
        decision_note(&(struct decision){.kind = DECIDED_KNOB, .what = i});
    out_to_memory(&out, text, sizeof text);
    stats_json(&out, DECISIONS_KEPT);
    CHECK(out_end(&out) == ENOSPC && out.length <= sizeof text);
}

static void files_are_refused_with_the_reason(void)
{
    CHECK(hak_stats_write(NULL) == EINVAL);
    CHECK(hak_stats_write("/nowhere/file") == ENOENT);
    CHECK(hak_stats_write("/") == EISDIR);
    CHECK(hak_stats_write("/dev/full") == ENOSPC);
}

/* A file that is there is emptied first; what a link points to is left alone. */
static void files_are_written_anew(void)
{
    static char text[TEXT_BYTES];
    char directory[] = "/tmp/hakmem-metrics-XXXXXX";
    char path[64], link[64];
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/file", directory);
    snprintf(link, sizeof link, "%s/link", directory);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(file >= 0 && symlink(path, link) == 0);
    CHECK(ftruncate(file, 10 * TEXT_BYTES) == 0);
    CHECK(hak_stats_write(link) == ELOOP);
    struct stat about;
    CHECK(fstat(file, &about) == 0 && about.st_size == 10 * TEXT_BYTES);
    CHECK(hak_stats_write(path) == 0);
    ssize_t length = read(file, text, sizeof text);
    CHECK(length > 2 && length < (ssize_t)sizeof text);
    CHECK(text[0] == '{' && text[length - 2] == '}' && text[length - 1] == '\n' && memchr(text, '\0', (size_t)length) == NULL);
    CHECK(close(file) == 0 && unlink(link) == 0 && unlink(path) == 0 && rmdir(directory) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(each_is_named_once_and_explained), UNIT_TEST(live_and_requested_are_exact),
        UNIT_TEST(stages_are_counted),               UNIT_TEST(mail_is_counted),
        UNIT_TEST(large_blocks_are_counted),         UNIT_TEST(what_is_given_back_is_counted),
        UNIT_TEST(newer_callers_get_zeros),          UNIT_TEST(json_is_balanced),
        UNIT_TEST(short_memory_is_told),             UNIT_TEST(files_are_refused_with_the_reason),
        UNIT_TEST(files_are_written_anew),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
