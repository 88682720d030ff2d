#include "heap/view.h"

/* The only slot of a closed bin: empty, and the last one. Never written. */
static void *closed_slot[1];

#define CLOSED {closed_slot, closed_slot}
#define CLOSED_4 CLOSED, CLOSED, CLOSED, CLOSED
#define CLOSED_16 CLOSED_4, CLOSED_4, CLOSED_4, CLOSED_4
#define CLOSED_ALL {CLOSED_16, CLOSED_16, CLOSED_16, CLOSED_16}

_Static_assert(SIZE_CLASSES == 64, "CLOSED_ALL lists 64 bins");

struct view view_unborn = {.bin = CLOSED_ALL, .kind = VIEW_UNBORN};
struct view view_birth = {.bin = CLOSED_ALL, .kind = VIEW_BIRTH};
struct view view_dead = {.bin = CLOSED_ALL, .kind = VIEW_DEAD};

_Thread_local struct view *thread_view = &view_unborn;

FRAGILE void view_close(struct view *view)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        view->bin[class] = (struct bin)CLOSED;
}
