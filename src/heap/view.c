#include "heap/view.h"

/* The only slot of a closed bin: empty, and the last one. Never written. */
static void *closed_slot[1];

#define CLOSED {closed_slot, closed_slot}
#define CLOSED_4 CLOSED, CLOSED, CLOSED, CLOSED
#define CLOSED_16 CLOSED_4, CLOSED_4, CLOSED_4, CLOSED_4
#define CLOSED_ALL {CLOSED_16, CLOSED_16, CLOSED_16, CLOSED_16}

_Static_assert(SIZE_CLASSES == 64, "CLOSED_ALL lists 64 bins");

struct doubled_views view_statics = {.views = {
                                         .unborn = {.bin = CLOSED_ALL, .kind = VIEW_UNBORN},
                                         .birth = {.bin = CLOSED_ALL, .kind = VIEW_BIRTH},
                                         .dead = {.bin = CLOSED_ALL, .kind = VIEW_DEAD},
                                     }};

_Thread_local struct view *thread_view = STATIC_VIEW(unborn);

FRAGILE void view_close(struct view *view)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        view->bin[class] = (struct bin)CLOSED;
}

static void make_double(struct view *view, enum view_kind kind)
{
    view_close(view);
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
