#include "check/check.h"

#include <string.h>

#include "arena/arena.h"
#include "base/alone.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/shard.h"
#include "check/checked_report.h"
#include "check/last.h"
#include "check/leaks.h"
#include "check/quarantine.h"
#include "check/run.h"
#include "check/trace.h"
#include "check/zones.h"
#include "config/policy.h"
#include "heap/door.h"
#include "heap/fork.h"
#include "heap/keeper.h"
#include "heap/view.h"
#include "observe/depot.h"
#include "observe/stack.h"
#include "os/handler.h"
#include "os/os.h"
#include "span/span.h"

enum { CALLS_MOST = 32 };

#define ALIGN_MOST GIB

/* realloc leaves blocks of so many bytes where they are, if it can. */
#define STAYS_LEAST (64 * KIB)

static bool wants(enum check what)
{
    return (policy.checks & what) != 0;
}

/* The kernel's number of the calling thread, which costs a system call if its heap does not know it. */
static int thread_number(void)
{
    const struct heap *heap = view_load()->heap;
    return heap != NULL ? heap->thread.number : os_thread_id();
}

static struct checked_event event_now(const struct os_frame *from)
{
    struct checked_event event = {.thread = thread_number()};
    if (wants(CHECK_STACKS) && from != NULL) {
        uintptr_t calls[CALLS_MOST];
        event.stack = depot_put(calls, stack_take(from, calls, CALLS_MOST));
    }
    return event;
}

static const char *kind_of_change(const struct checked *block, const char *changed)
{
    if (changed < checked_start(block))
        return "heap-buffer-underflow";
    return changed >= checked_start(block) + block->size ? "heap-buffer-overflow" : "heap-use-after-free";
}

/* Out of quarantine, and to be used again. */
static void let_go(struct checked *block)
{
    const char *changed = zones_changed_after_free(block);
    if (changed != NULL)
        checked_report(kind_of_change(block, changed), (uintptr_t)changed, "a write, found when its memory was to be used again", block);
    uint32_t shard = run_of(block)->shard;
    run_lock(shard);
    run_give_locked(block);
    run_unlock(shard);
}

/* Lets those go that have waited long enough, or all. False: there are none. */
static bool shorten_quarantine(unsigned shard, bool all)
{
    bool some = false;
    for (;;) {
        run_lock(shard);
        struct checked *block = quarantine_take_locked(shard, all);
        run_unlock(shard);
        if (block == NULL)
            return some;
        let_go(block);
        some = true;
    }
}

static bool empty_quarantine(void)
{
    bool some = false;
    for (unsigned shard = 0; shard < SHARDS; shard++)
        some |= shorten_quarantine(shard, true);
    return some;
}

static void *allocate(const struct request *request, const struct os_frame *from)
{
    struct run *run;
    if (request->size > PTRDIFF_MAX / 2 || request->align > ALIGN_MOST)
        return NULL;
    struct checked_event allocated = event_now(from);
    size_t bytes = zones_bytes(request->size, request->align);
    struct checked *block = run_take(bytes, &run);
    if (block == NULL && span_may_promise(divide_up(bytes, UNIT_SIZE)) && empty_quarantine())
        block = run_take(bytes, &run);
    if (block == NULL)
        return NULL;
    zones_place(block, request->size, request->align);
    if (request->zeroed && !run->zero)
        memset(checked_start(block), 0, request->size);
    else if (!request->zeroed && wants(CHECK_POISON))
        zones_fill_new(block);
    block->allocated = allocated;
    block->freed = (struct checked_event){0};
    block->family = (uint8_t)request->family;
    block->generation = run_generation();
    block->poisoned = false;
    run_lock(run->shard);
    block->state = CHECKED_LIVE;
    run_count_locked(run->shard, 1, block->size);
    run_unlock(run->shard);
    last_note(false, allocated.thread, checked_start(block), block->size);
    if (UNLIKELY(policy.trace != TRACE_NOTHING))
        trace_allocated(block, from);
    return checked_start(block);
}

/* Of a pointer into the memory of `block` that is not to a live block. Also of one that has left quarantine it is still known
 * who has freed it. */
static _Noreturn void report_pointer(const struct checked *block, const void *p)
{
    bool was_freed = (block->state == CHECKED_FREED || block->freed.thread != 0) && checked_start(block) == p;
    checked_report(was_freed ? "double-free" : "invalid-free", (uintptr_t)p, "free or realloc", block);
}

static void verify_zones(const struct checked *block, const char *how)
{
    const char *changed = zones_changed(block);
    if (changed != NULL)
        checked_report(kind_of_change(block, changed), (uintptr_t)changed, how, block);
}

static void verify_how(const struct checked *block, const struct freeing *how)
{
    if (how->family != FAMILY_UNKNOWN && how->family != block->family)
        checked_warn_of_family(block, how);
    if (how->size != SIZE_UNKNOWN && how->size != block->size)
        checked_report_size(block, how->size);
}

static bool free_checked(void *p, const struct freeing *how)
{
    union run_copy seen;
    struct checked *block = run_find_locked(p);
    if (block == NULL)
        return false;
    uint32_t shard = run_of(block)->shard;
    bool fine = block->state == CHECKED_LIVE && checked_start(block) == p;
    if (fine) {
        block->state = CHECKED_FREED;
        run_count_locked(shard, -1, -block->size);
    } else {
        (void)run_copy(block, &seen);
    }
    run_unlock(shard);
    if (!fine)
        report_pointer(seen.run.block, p);
    if (UNLIKELY(policy.trace != TRACE_NOTHING))
        trace_freed(block, how->from);
    verify_how(block, how);
    verify_zones(block, "found by free");
    block->freed = event_now(how->from);
    last_note(true, block->freed.thread, p, block->size);
    bool waits = wants(CHECK_QUARANTINE);
    if (wants(CHECK_POISON))
        zones_poison(block, waits);
    if (!waits) {
        let_go(block);
        return true;
    }
    run_lock(shard);
    block->poisoned = wants(CHECK_POISON);
    quarantine_put_locked(block);
    run_unlock(shard);
    (void)shorten_quarantine(shard, false);
    return true;
}

static bool size_of_checked(const void *p, size_t *size)
{
    static const char how[] = "realloc or malloc_usable_size";
    union run_copy seen;
    const struct checked *block = run_look(p, &seen);
    if (block == NULL)
        return false;
    if (block->state == CHECKED_FREED)
        checked_report("heap-use-after-free", (uintptr_t)p, how, block);
    if (block->state != CHECKED_LIVE || checked_start(block) != p)
        checked_report("invalid-free", (uintptr_t)p, how, block);
    verify_zones(block, "found by realloc or malloc_usable_size");
    *size = block->size;
    return true;
}

/* What is small moves, so that whoever still uses the old pointer is found. A large block that grows byte by byte would be
 * copied each time; one of which little is left would keep its memory. */
static bool resize_checked(void *p, size_t size)
{
    struct checked *block = run_find_locked(p);
    if (block == NULL)
        return false;
    uint32_t shard = run_of(block)->shard;
    size_t before = block->size;
    bool stays = min_size(before, size) >= STAYS_LEAST && size >= before / 2;
    bool resized = stays && zones_resize(block, size, wants(CHECK_POISON));
    if (resized)
        run_count_locked(shard, 0, size - before);
    run_unlock(shard);
    return resized;
}

static _Noreturn void refuse(const char *fault, const void *p)
{
    checked_report_stranger(fault, p);
}

/* Nothing verifies it: the slab may give its pages back. Until it is empty none of its blocks is used again. */
static void poison(void *p, size_t bytes)
{
    if (wants(CHECK_POISON))
        zones_fill_freed(p, bytes);
}

static void give_quarantine_back(void)
{
    (void)empty_quarantine();
}

static const struct keeper keeper = {
    .allocate = allocate,
    .free = free_checked,
    .size_of = size_of_checked,
    .resize = resize_checked,
    .poison = poison,
    .give_back = give_quarantine_back,
    .refuse = refuse,
    .lock = run_lock_all,
    .unlock = run_unlock_all,
    .lock_is_mine = run_lock_is_mine,
};

void check_start(void)
{
    run_lock_all(); /* so that it is known which process this is */
    run_unlock_all();
    keeper_set(&keeper);
}

struct look {
    bool at_exit;
    size_t blocks;
};

/* Handlers of the program's may run before it is gone, and wait for other threads, which allocate. */
static COLD _Noreturn void report_found(const char *kind, const char *changed, const struct checked *block, bool at_exit)
{
    union run_copy seen;
    block = run_copy(block, &seen);
    run_unlock_all();
    if (at_exit)
        checked_report_at_exit(kind, (uintptr_t)changed, block);
    checked_report(kind, (uintptr_t)changed, "found by hak_check", block);
}

static const char *changed_in(const struct checked *block)
{
    if (block->state == CHECKED_LIVE)
        return zones_changed(block);
    return block->state == CHECKED_FREED ? zones_changed_after_free(block) : NULL;
}

/* All locks are held. */
static void verify_block(const struct checked *block, bool at_exit)
{
    const char *changed = changed_in(block);
    if (changed != NULL)
        report_found(kind_of_change(block, changed), changed, block, at_exit);
}

static void verify(struct run *run, void *argument)
{
    struct look *look = argument;
    for (uint32_t i = 0; i < run->blocks; i++) {
        verify_block(&run->block[i], look->at_exit);
        look->blocks += run->block[i].state != CHECKED_UNUSED;
    }
}

static void verify_all(void *argument)
{
    run_lock_all();
    run_each_locked(verify, argument);
    run_unlock_all();
}

/* Not if a signal handler asks that has interrupted the holder of a lock. */
static bool may_look(void)
{
    return keeper_now() == &keeper && !fork_holds_any_lock();
}

struct change {
    const char *at; /* NULL: none was found */
    const char *kind;
    const struct checked *block;
    union run_copy copy;
};

static void find_change(struct run *run, void *argument)
{
    struct change *change = argument;
    for (uint32_t i = 0; i < run->blocks && change->at == NULL; i++) {
        change->at = changed_in(&run->block[i]);
        if (change->at == NULL)
            continue;
        change->kind = kind_of_change(&run->block[i], change->at);
        change->block = run_copy(&run->block[i], &change->copy);
    }
}

/* Other threads may hold a lock, and wait for the end of this report. A signal handler that came meanwhile and allocated would wait
 * for this thread: it is not inside the door. */
void check_note_changed(void)
{
    struct change change = {0};
    if (!alone() || !may_look())
        return;
    struct os_signals before = os_block_signals();
    run_lock_all();
    run_each_locked(find_change, &change);
    run_unlock_all();
    os_unblock_signals(before);
    if (change.at != NULL)
        checked_note_changed(change.kind, (uintptr_t)change.at, change.block);
}

size_t check_all(void)
{
    struct look look = {0};
    if (may_look())
        door_visit(verify_all, &look);
    return look.blocks;
}

static void look_at_exit(void *argument)
{
    verify_all(argument);
    if (wants(CHECK_LEAKS))
        leaks_report();
}

/* The program's own destructors have run, and those of most of its libraries. */
__attribute__((destructor)) static void at_exit(void)
{
    struct look look = {.at_exit = true};
    if (may_look())
        door_visit(look_at_exit, &look);
}
