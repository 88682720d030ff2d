#include "api/live.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "api/stats_json.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/claim.h"
#include "base/fail.h"
#include "base/fmt.h"
#include "config/paths.h"
#include "heap/control.h"
#include "os/page.h"

#define LIVE_BYTES (1 * MIB)

enum { TEXT_AT = 1024, NAME_MOST = 16 };

#define TEXT_MOST (LIVE_BYTES - TEXT_AT)

/* The first words are those of hak_control. */
struct live {
    char magic[8];
    uint32_t version;
    uint32_t bytes; /* of the page */
    struct control_words words;
    uint64_t sequence; /* odd while the text is written */
    uint32_t length;   /* of the text */
    uint32_t pid;
    uint64_t started;  /* the process, as /proc counts */
};

_Static_assert(offsetof(struct live, sequence) == 552 && sizeof(struct live) <= TEXT_AT, "tools know this layout");

static struct live *page;
static uint32_t pid; /* of the process that tried to make it */

static uint32_t writer; /* the process that brings it up to date */

/* Bytes that are taken for the text: hardly any process needs all of the page. */
static size_t text_room = 16 * KIB;

static void path_of_page(char path[PATH_MOST + NAME_MOST])
{
    (void)fmt_print(path, PATH_MOST + NAME_MOST, "%s/%u", path_of(PATH_LIVE), pid);
}

static void forget_page(void)
{
    page_forget(page, LIVE_BYTES);
    page = NULL;
}

/* Not again in each child. */
static COLD void warn_once(int error)
{
    static bool warned;
    if (!warned)
        warn("HAKMEM_LIVE: no page can be made in %s: error %d", path_of(PATH_LIVE), error);
    warned = true;
}

/* With its first page in memory. NULL: see *error. */
static struct live *open_page(const char *path, int *error)
{
    struct live *made = page_make(path, LIVE_BYTES, error);
    if (made == NULL || page_has_room((char *)made, TEXT_AT))
        return made;
    page_forget(made, LIVE_BYTES);
    page_remove(path);
    *error = ENOSPC;
    return NULL;
}

/* The parent's page is not for its child to write. */
static void make_page(void)
{
    static char path[PATH_MOST + NAME_MOST]; /* a heartbeat may be on the stack of a signal handler */
    if (page != NULL)
        forget_page();
    store_release(&pid, (uint32_t)getpid()); /* the parent's page is nobody's by now */
    path_of_page(path);
    int error = 0;
    struct live *made = open_page(path, &error);
    if (made == NULL) {
        warn_once(error);
        return;
    }
    made->version = CONTROL_VERSION;
    made->bytes = LIVE_BYTES;
    made->pid = pid;
    made->started = page_process_start();
    memcpy(made->magic, "hakmemL", sizeof made->magic);
    store_release(&page, made);
}

/* Its first page stays in memory, but a file system that copies what is written may want room for it again. */
static bool may_be_written(struct live *made)
{
    return page_has_room((char *)&made->words.scratch, sizeof made->words.scratch);
}

static void write_page(void)
{
    struct out out;
    bool fits = false;
    char *text = (char *)page + TEXT_AT;
    if (!may_be_written(page))
        return;
    store_relaxed(&page->sequence, page->sequence + 1);
    store_fence();
    while (page_has_room(text, text_room)) {
        out_to_memory(&out, text, text_room);
        stats_json(&out, DECISIONS_AGAIN);
        fits = out_end(&out) == 0;
        if (fits || text_room == TEXT_MOST)
            break;
        text_room = min_size(2 * text_room, TEXT_MOST);
    }
    page->length = fits ? (uint32_t)out.length : 0;
    store_release(&page->sequence, page->sequence + 1);
}

bool live_is_own(void)
{
    return load_acquire(&pid) == (uint32_t)getpid();
}

struct control_words *live_update(void)
{
    if (!claim_take(&writer))
        return NULL;
    if (!live_is_own())
        make_page();
    if (page != NULL)
        write_page();
    claim_drop(&writer);
    return page != NULL ? &page->words : NULL;
}

struct control_words *live_words(void)
{
    if (!live_is_own())
        return NULL;
    struct live *now = load_acquire(&page);
    return now != NULL && may_be_written(now) ? &now->words : NULL;
}

/* In a child that is the first process of a PID namespace, as its parent is of its own, the numbers are the same. */
void live_forked(void)
{
    store_release(&pid, 0u);
}

void live_end(void)
{
    char path[PATH_MOST + NAME_MOST];
    if (page == NULL || !live_is_own())
        return;
    path_of_page(path);
    page_remove(path);
}
