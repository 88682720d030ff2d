#include "heap/orphan.h"

#include "heap/fork.h"
#include "heap/life.h"
#include "heap/mail.h"
#include "heap/shelf.h"

struct lock orphan_lock = LOCK_INITIALIZER(LOCK_ORPHAN);

static struct heap *orphan;

void *orphan_malloc(unsigned class)
{
    if (fork_holds_any_lock())
        return NULL;
    void *block = NULL;
    lock_take(&orphan_lock);
    if (orphan == NULL)
        orphan = life_birth(NULL);
    if (orphan != NULL) {
        if (mail_waits(orphan))
            mail_collect(orphan, false);
        shelf_take(orphan, class, &block, 1);
    }
    lock_drop(&orphan_lock);
    return block;
}

bool orphan_free(void *p, uintptr_t tag)
{
    return !fork_holds_any_lock() && mail_send_now(mail_owner(tag), p);
}
