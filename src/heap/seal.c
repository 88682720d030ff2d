#include "heap/seal.h"

#include <string.h>

#include "base/zero.h"
#include "heap/report.h"
#include "os/os.h"
#include "slab/slab.h"

struct seal_secret seal_secret;

void seal_start(void)
{
    seal_secret = (struct seal_secret){.mask = os_random(), .factor = os_random() | 1};
}

static bool is_free(const void *p, unsigned class)
{
    return seal_is_free(*seal_word(p, class), seal_key(p));
}

void seal_live(void *p, unsigned class, size_t size)
{
    size_t room = seal_room(class);
    if (class == ZERO_CLASS)
        return;
    if (UNLIKELY(!is_free(p, class) || !is_zero(p, room)))
        report_pointer(FAULT_WRITE_AFTER_FREE, p);
    *seal_word(p, class) = seal_if_live(seal_key(p), room - size);
}

/* What it means that there is no seal of a live block. A seal that is 0 is that of a block whose pages went back, or was overwritten. */
static _Noreturn COLD void report_seal(const void *p, unsigned class, const char *if_free)
{
    const struct slab *slab = arena_span(p);
    if (!slab_holds(slab, p))
        report_pointer(FAULT_INVALID_FREE, p);
    bool freed = *seal_word(p, class) == seal_if_free(seal_key(p)) || slab_is_free(slab, p);
    report_pointer(freed ? if_free : FAULT_OVERFLOW, p);
}

size_t seal_size(const void *p, unsigned class, const char *if_free)
{
    size_t room = seal_room(class);
    if (UNLIKELY(!seal_may_be_read(p, class) && !slab_holds(arena_span(p), p)))
        report_pointer(FAULT_INVALID_FREE, p);
    if (class == ZERO_CLASS)
        return 0;
    uint64_t unused = seal_unused(*seal_word(p, class), seal_key(p));
    if (UNLIKELY(unused > room))
        report_seal(p, class, if_free);
    if (UNLIKELY(!is_zero_before((const char *)p + room, unused)))
        report_pointer(FAULT_OVERFLOW, p);
    return room - unused;
}

void seal_free(void *p, unsigned class, size_t size)
{
    if (class == ZERO_CLASS)
        return;
    memset(p, 0, size);
    *seal_word(p, class) = seal_if_free(seal_key(p));
}

void seal_resize(void *p, unsigned class, size_t size)
{
    size_t before = seal_size(p, class, FAULT_USE_AFTER_FREE);
    if (class == ZERO_CLASS)
        return;
    if (size < before)
        memset((char *)p + size, 0, before - size);
    *seal_word(p, class) = seal_if_live(seal_key(p), seal_room(class) - size);
}
