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

/* 0, or an error's number. */
static int open_page(const char *path)
{
    int error = 0;
    page = page_make(path, LIVE_BYTES, &error);
    if (page != NULL && !page_has_room((char *)page, TEXT_AT)) {
        forget_page();
        page_remove(path);
        error = ENOSPC;
    }
    return error;
}

/* The parent's page is not for its child to write. */
static void make_page(void)
{
    char path[PATH_MOST + NAME_MOST];
    if (page != NULL)
        forget_page();
    store_relaxed(&pid, (uint32_t)getpid());
    path_of_page(path);
    int error = open_page(path);
    if (error != 0) {
        warn_once(error);
        return;
    }
    page->version = CONTROL_VERSION;
    page->bytes = LIVE_BYTES;
    page->pid = pid;
    page->started = page_process_start();
    memcpy(page->magic, "hakmemL", sizeof page->magic);
}

static void write_page(void)
{
    struct out out;
    bool fits = false;
    char *text = (char *)page + TEXT_AT;
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
    return load_relaxed(&pid) == (uint32_t)getpid();
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
    return page != NULL && live_is_own() ? &page->words : NULL;
}

void live_end(void)
{
    char path[PATH_MOST + NAME_MOST];
    if (page == NULL || !live_is_own())
        return;
    path_of_page(path);
    page_remove(path);
}
