#include "heap/view.h"

/* malloc looks at the budget first, and comes to the door whatever it asks for; free finds no tag that names these views. */
#define SPENT (INT64_MIN / 2)

struct doubled_views view_statics = {.views = {
                                         .unborn = {.budget = SPENT, .kind = VIEW_UNBORN},
                                         .birth = {.budget = SPENT, .kind = VIEW_BIRTH},
                                         .dead = {.budget = SPENT, .kind = VIEW_DEAD},
                                     }};

_Thread_local struct view *thread_view = STATIC_VIEW(unborn);

/* Never written. Among the variables: each process has those in memory anyway. */
void *closed_magazine[2] = {NULL, SLOT_FULL};

FRAGILE void view_close(struct view *view)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        store_relaxed(&view->top[class], (void **)closed_magazine);
}

static void make_double(struct static_view *view, enum view_kind kind)
{
    store_relaxed(&view->budget, (int64_t)SPENT);
    store_release(&view->kind, kind);
}

/* Threads that do it at once write the same. */
void view_prepare_doubles(void)
{
    struct static_views *doubles = &view_statics.doubles;
    if (load_acquire(&doubles->dead.kind) == VIEW_DEAD)
        return;
    make_double(&doubles->unborn, VIEW_UNBORN);
    make_double(&doubles->birth, VIEW_BIRTH);
    make_double(&doubles->dead, VIEW_DEAD); /* the last: it says that all are made */
}
