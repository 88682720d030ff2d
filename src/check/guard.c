#include "check/guard.h"

#include <string.h>

#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "check/guard_report.h"
#include "config/policy.h"
#include "heap/events.h"
#include "heap/interrupt.h"
#include "heap/keeper.h"
#include "observe/unwind.h"
#include "os/os.h"

/* Between the end of a block and the next multiple of its alignment: a write there is seen when the block is freed. */
enum { SLACK_BYTE = 0xa5 };

struct pool {
    char *base;              /* a closed page, then one for each slot, each followed by a closed one */
    struct guard_slot *slots;
    size_t page;             /* bytes */
    uint32_t count;          /* of slots */
};

/* Refused: there is no memory for it, and it is not asked for again. */
enum { POOL_NONE, POOL_BEGUN, POOL_READY, POOL_REFUSED };

static struct pool pool;
static uint32_t pool_state;
static uint32_t turn;
static uint64_t random_state;

/* Threads may disturb each other here: the numbers are random all the same. */
static uint64_t next_random(void)
{
    uint64_t x = load_relaxed(&random_state);
    if (x == 0)
        x = os_random() | 1;
    x = next_xorshift(x);
    store_relaxed(&random_state, x);
    return x;
}

static bool make_pool(void)
{
    pool.page = os_page_size();
    pool.count = policy.guard_slots;
    pool.slots = meta_alloc(pool.count * sizeof *pool.slots);
    pool.base = pool.slots != NULL ? os_reserve(NULL, (2 * pool.count + 1) * pool.page) : NULL;
    return pool.base != NULL;
}

static bool have_pool(void)
{
    uint32_t state = POOL_NONE;
    if (load_acquire(&pool_state) == POOL_READY)
        return true;
    if (!__atomic_compare_exchange_n(&pool_state, &state, (uint32_t)POOL_BEGUN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    bool made = make_pool();
    if (made)
        guard_report_start();
    store_release(&pool_state, made ? (uint32_t)POOL_READY : (uint32_t)POOL_REFUSED);
    return made;
}

static char *page_of(const struct guard_slot *slot)
{
    return pool.base + (2 * (size_t)(slot - pool.slots) + 1) * pool.page;
}

static bool change(struct guard_slot *slot, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&slot->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* One that was never used, or the one that was freed the longest ago. */
static struct guard_slot *take_slot(void)
{
    struct guard_slot *oldest = NULL;
    uint32_t now = load_relaxed(&turn);
    for (uint32_t i = 0; i < pool.count; i++) {
        struct guard_slot *slot = &pool.slots[i];
        uint32_t state = load_acquire(&slot->state);
        if (state == GUARD_UNUSED && change(slot, GUARD_UNUSED, GUARD_BUSY))
            return slot;
        if (state == GUARD_FREED
            && (oldest == NULL || now - load_relaxed(&slot->freed_in_turn) > now - load_relaxed(&oldest->freed_in_turn)))
            oldest = slot;
    }
    return oldest != NULL && change(oldest, GUARD_FREED, GUARD_BUSY) ? oldest : NULL;
}

static void note_event(struct guard_event *event, const struct os_frame *from)
{
    struct os_frame here = os_frame_here();
    event->thread = os_thread_id();
    event->count = (uint32_t)unwind(from != NULL ? from : &here, UNWIND_SOUND, event->calls, GUARD_CALLS);
}

/* The bytes that a block of this size takes. In the hardened library blocks of 8 bytes are requested for what is to be aligned to 16. */
static size_t rounded(size_t size, size_t align)
{
    return align_up(max_size(size, 1), max_size(align, size < 16 && !HARDENED ? 8 : 16));
}

/* At the start of the page, to see what is written before it, or as near to the end as alignment lets it. */
static void place(struct guard_slot *slot, size_t size, size_t room)
{
    char *page = page_of(slot);
    bool at_start = next_random() % 2 == 0;
    slot->block = at_start ? page : page + pool.page - room;
    slot->size = size;
    slot->room = room;
    memset(slot->block + size, SLACK_BYTE, room - size);
}

static void *allocate(size_t size, size_t room, const struct os_frame *from)
{
    struct guard_slot *slot = have_pool() ? take_slot() : NULL;
    if (slot == NULL)
        return NULL;
    uint32_t before = slot->block == NULL ? GUARD_UNUSED : GUARD_FREED;
    if (!os_commit(page_of(slot), pool.page)) {
        store_release(&slot->state, before);
        return NULL;
    }
    place(slot, size, room);
    note_event(&slot->allocated, from);
    slot->freed.count = 0;
    store_release(&slot->state, (uint32_t)GUARD_LIVE);
    return slot->block;
}

/* Each heartbeat's bytes have the same chance, whatever came before: no pattern of a program is always missed. */
static void *sample(struct heap *heap, size_t size, size_t align, const struct os_frame *from)
{
    size_t room = rounded(size, align);
    int64_t bytes = heap->granted - heap->looked_to;
    size_t rate = policy.guard_bytes;
    heap->looked_to = heap->granted;
    if (rate == 0 || (int64_t)(next_random() % rate) >= bytes || room > os_page_size() || interrupt_holds_magazines(heap))
        return NULL;
    return allocate(size, room, from);
}

bool guard_find(uintptr_t address, struct guard_place *found)
{
    *found = (struct guard_place){0};
    if (load_acquire(&pool_state) != POOL_READY)
        return false;
    size_t page = (address - (uintptr_t)pool.base) / pool.page;
    if (page > 2 * (size_t)pool.count)
        return false;
    size_t index = page / 2;
    size_t next = index + page % 2;
    found->inside = next > index && pool.slots[index].block != NULL;
    if (found->inside) {
        found->slot = &pool.slots[index];
        return true;
    }
    /* Between two, or where none has been yet: whose block is nearer? */
    const struct guard_slot *left = index > 0 ? &pool.slots[index - 1] : NULL;
    const struct guard_slot *right = next < pool.count ? &pool.slots[next] : NULL;
    size_t from_left = left != NULL && left->block != NULL ? address - (uintptr_t)(left->block + left->size) : SIZE_MAX;
    size_t from_right = right != NULL && right->block != NULL ? (uintptr_t)right->block - address : SIZE_MAX;
    if (from_left != SIZE_MAX || from_right != SIZE_MAX)
        found->slot = from_left <= from_right ? left : right;
    return true;
}

/* The first byte behind the block's end that is not as it was; NULL: all are. */
static const char *changed_slack(const struct guard_slot *slot)
{
    const char *limit = slot->block + slot->room;
    for (const char *at = slot->block + slot->size; at < limit; at++)
        if ((unsigned char)*at != SLACK_BYTE)
            return at;
    return NULL;
}

static struct guard_slot *slot_at(const void *p)
{
    struct guard_place here;
    if (!guard_find((uintptr_t)p, &here))
        return NULL;
    if (!here.inside || here.slot->block != p)
        guard_report_pointer(GUARD_BAD_POINTER, (uintptr_t)p, here);
    return (struct guard_slot *)(uintptr_t)here.slot;
}

static bool free_guarded(void *p, const struct freeing *how)
{
    struct guard_slot *slot = slot_at(p);
    if (slot == NULL)
        return false;
    struct guard_place here = {slot, true};
    if (!change(slot, GUARD_LIVE, GUARD_BUSY))
        guard_report_pointer(GUARD_DOUBLE_FREE, (uintptr_t)p, here);
    /* Less is not wrong: in the hardened library aligned blocks have more than was asked for. */
    if (how->size != SIZE_UNKNOWN && how->size > slot->size)
        guard_report_pointer(GUARD_WRONG_SIZE, (uintptr_t)p, here);
    const char *changed = changed_slack(slot);
    if (changed != NULL)
        guard_report_pointer(GUARD_WRITTEN_BEYOND, (uintptr_t)changed, here);
    note_event(&slot->freed, how->from);
    (void)os_close(page_of(slot), pool.page);
    store_relaxed(&slot->freed_in_turn, add_relaxed(&turn, 1u));
    store_release(&slot->state, (uint32_t)GUARD_FREED);
    return true;
}

static bool size_of_guarded(const void *p, size_t *size)
{
    const struct guard_slot *slot = slot_at(p);
    if (slot == NULL)
        return false;
    if (load_acquire(&slot->state) != GUARD_LIVE)
        guard_report_pointer(GUARD_USE_AFTER_FREE, (uintptr_t)p, (struct guard_place){slot, true});
    *size = slot->size;
    return true;
}

void guard_start(void)
{
    store_relaxed(&policy.heartbeat_bytes, min_size(policy.heartbeat_bytes, policy.guard_bytes));
    store_release(&heap_events.free_other, free_guarded);
    store_release(&heap_events.size_of_other, size_of_guarded);
    store_release(&heap_events.sample, sample); /* last: a library's constructor may have started threads */
}
