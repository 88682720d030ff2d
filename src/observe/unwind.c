#include "observe/unwind.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "observe/rules.h"
#include "os/os.h"

/* What has been copied of the stack, unless it is read where it is. */
struct window {
    uintptr_t ra_at; /* where the last step has read the return address, and the frame pointer; 0: elsewhere */
    uintptr_t fp_at;
    struct os_module module; /* that the call before was in: the next is often in it too */
    enum unwind_trust trust;
    uintptr_t limit;    /* beyond it a frame pointer of code without call frame information is not believed */
    uintptr_t sure_at;  /* of a sound stack, the pages from here */
    uintptr_t sure_end; /* to here are known to be there */
    uintptr_t at;
    size_t length;
    char *bytes; /* WINDOW_BYTES of them; NULL: the stack is sound */
    bool at_start; /* the last step has found where the thread starts */
};

enum { WINDOW_BYTES = 1024 };

enum { WORD = sizeof(uintptr_t), PAGE_LEAST = 4096 };

/* So many stacks of a thread are taken before it is asked again whether the pages that they lead to are there. */
enum { SURE_FOR = 64 };

/* A larger frame is not one, on a sound stack. */
#define FRAME_MOST (64 * MIB)

/* Sanitizers think that a function has no business in its caller's frame. */
UNSANITIZED static uintptr_t word_at(uintptr_t at)
{
    return *(const volatile uintptr_t *)at;
}

static NOINLINE bool ask_for_page(struct window *window, uintptr_t at)
{
    uintptr_t page = align_down(at, PAGE_LEAST);
    if (!os_is_readable(page))
        return false;
    if (page != window->sure_end)
        window->sure_at = page;
    window->sure_end = page + PAGE_LEAST;
    return true;
}

static bool is_there(struct window *window, uintptr_t at)
{
    return LIKELY(at - window->sure_at < window->sure_end - window->sure_at) || ask_for_page(window, at);
}

static bool read_word(struct window *window, uintptr_t at, uintptr_t *word)
{
    if (at % WORD != 0)
        return false;
    if (window->trust == UNWIND_SOUND) {
        if (at >= window->limit || !is_there(window, at))
            return false;
        *word = word_at(at);
        return true;
    }
    if (at - window->at >= window->length) {
        window->at = at;
        window->length = align_down(os_read(at, window->bytes, WINDOW_BYTES), WORD);
        if (window->length == 0)
            return false;
    }
    memcpy(word, window->bytes + (at - window->at), WORD);
    return true;
}

/* *at becomes where it was; 0: nowhere in memory. */
static bool read_saved(struct window *window, const struct cfi_saved *saved, uintptr_t cfa, uintptr_t fp, uintptr_t *at,
                       uintptr_t *value)
{
    *at = 0;
    switch (saved->place) {
    case CFI_SAME:
        return true;
    case CFI_AT_CFA:
        *at = cfa + (uintptr_t)(intptr_t)saved->offset;
        return read_word(window, *at, value);
    case CFI_AT_FP:
        *at = fp + (uintptr_t)(intptr_t)saved->offset;
        return read_word(window, *at, value);
    case CFI_UNDEFINED:
    case CFI_UNKNOWN:
        break;
    }
    return false;
}

/* To the caller, as the rule says. False: this is the end, or it makes no sense. */
static bool follow_rule(struct window *window, const struct cfi_rule *rule, struct os_frame *frame)
{
    uintptr_t cfa = (rule->cfa_by_fp ? frame->fp : frame->sp) + (uintptr_t)(intptr_t)rule->cfa_offset;
    window->at_start = rule->ra.place == CFI_UNDEFINED;
    if (cfa - frame->sp > FRAME_MOST || (rule->cfa_in_memory && !read_word(window, cfa, &cfa)))
        return false;
    struct os_frame caller = {.sp = cfa, .fp = frame->fp, .ra = frame->ra};
    if (cfa - frame->sp > FRAME_MOST || !read_saved(window, &rule->ra, cfa, frame->fp, &window->ra_at, &caller.ra))
        return false;
    if (!read_saved(window, &rule->fp, cfa, frame->fp, &window->fp_at, &caller.fp))
        caller.fp = 0;
    if (rule->cfa_in_memory)
        window->ra_at = 0; /* it depends on more than the two words */
    caller.pc = os_frame_address(caller.ra);
    /* Only a function that has called nobody yet may have no frame of its own. */
    if (cfa == frame->sp && caller.pc == frame->pc)
        return false;
    *frame = caller;
    return true;
}

/* To the caller, if the frame pointer leads to a pair of the caller's frame pointer and a return address. Code without call
 * frame information may use the register for anything: from here on only the page of the stack pointer is sure. */
static bool follow_frame_pointer(struct window *window, struct os_frame *frame)
{
    uintptr_t fp;
    uintptr_t ra;
    window->limit = min_size(window->limit, align_up(frame->sp + 1, PAGE_LEAST));
    if (frame->fp < frame->sp || !read_word(window, frame->fp, &fp) || !read_word(window, frame->fp + WORD, &ra))
        return false;
    if (fp != 0 && fp <= frame->fp)
        return false;
    *frame = (struct os_frame){.pc = os_frame_address(ra), .sp = frame->fp + sizeof fp + sizeof ra, .fp = fp, .ra = ra};
    return true;
}

static bool find_module(struct window *window, uintptr_t pc)
{
    return os_module_holds(&window->module, pc) || os_find_module(pc, &window->module);
}

/* Was all until here known by rules, on a sound stack? */
static bool is_sure(const struct window *window)
{
    return window->trust == UNWIND_SOUND && window->limit == UINTPTR_MAX;
}

/* To the caller, as the compiler has promised. */
static void follow_link(struct os_frame *frame)
{
    uintptr_t fp = word_at(frame->fp);
    uintptr_t ra = word_at(frame->fp + WORD);
    *frame = (struct os_frame){.pc = ra, .sp = frame->fp + sizeof fp + sizeof ra, .fp = fp, .ra = ra};
}

/* One step towards the start of the thread; *is_call: what is found there is a return address. */
static bool step(struct window *window, struct os_frame *frame, bool *is_call)
{
    struct cfi_rule rule;
    if (frame->linked) {
        follow_link(frame);
        *is_call = true;
        window->ra_at = 0;
        return true;
    }
    /* A call may be the last instruction of a function: where it returns to is another's. */
    uintptr_t pc = *is_call ? frame->pc - 1 : frame->pc;
    bool known = find_module(window, pc);
    /* Above it there is only what starts threads. To look that up would bring 128 KiB of libc's call frame information into memory. */
    if (known && *is_call && is_sure(window) && os_frame_begins_thread(frame->pc, &window->module)) {
        window->at_start = true;
        return false;
    }
    *is_call = true;
    window->ra_at = 0;
    if (!known || window->module.unwinding == NULL || !rules_find(window->module.unwinding, pc, &rule))
        return follow_frame_pointer(window, frame);
    if (!rule.is_signal)
        return follow_rule(window, &rule, frame);
    *is_call = false;
    return os_frame_interrupted_at(frame->sp, is_sure(window), frame);
}

static void open_window(struct window *window, enum unwind_trust trust, char *bytes, uintptr_t sp)
{
    uintptr_t page = align_down(sp, PAGE_LEAST);
    *window = (struct window){
        .trust = trust, .bytes = bytes, .limit = UINTPTR_MAX, .sure_at = page, .sure_end = page + PAGE_LEAST};
}

static size_t unwind_in(const struct os_frame *from, enum unwind_trust trust, char *bytes, uintptr_t *calls, size_t most)
{
    struct window window;
    open_window(&window, trust, bytes, from->sp);
    struct os_frame frame = *from;
    bool is_call = false;
    size_t count = 0;
    while (count < most && frame.pc != 0) {
        calls[count++] = frame.pc;
        if (!step(&window, &frame, &is_call))
            break;
    }
    return count;
}

/* Apart: stacks of a few KiB have no room for this beside the rest. */
static NOINLINE size_t unwind_broken(const struct os_frame *from, uintptr_t *calls, size_t most)
{
    char bytes[WINDOW_BYTES];
    return unwind_in(from, UNWIND_BROKEN, bytes, calls, most);
}

size_t unwind(const struct os_frame *from, enum unwind_trust trust, uintptr_t *calls, size_t most)
{
    return trust == UNWIND_SOUND ? unwind_in(from, trust, NULL, calls, most) : unwind_broken(from, calls, most);
}

/* A stack on the way. */
struct walk {
    struct window window;
    struct os_frame frame;
    bool is_call; /* frame.pc is a return address */
    bool more;    /* the frame is a call; else the stack has ended */
    uintptr_t *calls;
    size_t count;
    size_t most;
};

static bool goes_on(const struct walk *walk)
{
    return walk->more && walk->count < walk->most;
}

static bool is_here(const struct unwind_call *call, const struct walk *walk)
{
    const struct os_frame *frame = &walk->frame;
    return walk->is_call && call->pc == frame->pc && call->sp == frame->sp && call->fp == frame->fp;
}

static void go_to(struct walk *walk, const struct unwind_call *call)
{
    walk->frame = (struct os_frame){.pc = call->pc, .sp = call->sp, .fp = call->fp};
}

/* Does the call lead to the one after it, as it did? It is the same frame, so the same rule says where the words are; if they
 * are the same, so is the next. */
static bool leads_to_next(struct walk *walk, const struct unwind_call *call)
{
    uintptr_t ra;
    uintptr_t fp = call->fp;
    return call->ra_at != 0 && read_word(&walk->window, call->ra_at, &ra) && os_frame_address(ra) == call[1].pc
           && (call->fp_at == 0 || read_word(&walk->window, call->fp_at, &fp)) && fp == call[1].fp;
}

/* By the rules; *call becomes how, for the next time. */
static void step_and_note(struct walk *walk, struct unwind_call *call)
{
    bool was_call = walk->is_call;
    *call = (struct unwind_call){.pc = walk->frame.pc, .sp = walk->frame.sp, .fp = walk->frame.fp};
    walk->calls[walk->count++] = call->pc;
    walk->more = step(&walk->window, &walk->frame, &walk->is_call) && walk->frame.pc != 0;
    call->is_last = !walk->more && walk->window.at_start;
    if (was_call && walk->is_call && walk->more) {
        call->ra_at = walk->window.ra_at;
        call->fp_at = walk->window.fp_at;
    }
}

/* To the first call that was there the last time: returned, `end` if there is none. The others are noted in `above`. */
static const struct unwind_call *walk_to_known(struct walk *walk, const struct unwind_call *known, const struct unwind_call *end,
                                               struct unwind_call *above)
{
    for (size_t i = 0; goes_on(walk); i++) {
        while (known < end && known->sp < walk->frame.sp)
            known++;
        if (known < end && is_here(known, walk))
            return known;
        step_and_note(walk, &above[i]);
    }
    return end;
}

/* From a known call as far as each leads where it did. Returns the last of them; the walk is there. */
static const struct unwind_call *walk_along(struct walk *walk, const struct unwind_call *call, const struct unwind_call *end)
{
    while (walk->count < walk->most) {
        if (call->is_last) {
            walk->calls[walk->count++] = call->pc;
            walk->more = false;
            walk->window.at_start = true;
            break;
        }
        if (call + 1 == end || !leads_to_next(walk, call))
            break;
        walk->calls[walk->count++] = call->pc;
        call++;
    }
    go_to(walk, call);
    return call;
}

/* From a call that leads elsewhere than it did, by what is known again or by the rules; all is noted in `below`. Returns how
 * many. */
static size_t walk_on(struct walk *walk, const struct unwind_call *known, const struct unwind_call *end, struct unwind_call *below)
{
    size_t noted = 0;
    for (; goes_on(walk); noted++) {
        while (known < end && known->sp < walk->frame.sp)
            known++;
        if (known + 1 < end && is_here(known, walk) && leads_to_next(walk, known)) {
            below[noted] = *known++;
            walk->calls[walk->count++] = below[noted].pc;
            go_to(walk, known);
        } else {
            step_and_note(walk, &below[noted]);
        }
    }
    return noted;
}

/* What was known of the stack is now: the new calls above, some of those that it had, others below them. All end with the array. */
static void remember(struct unwind_memo *memo, size_t count_above, const struct unwind_call *kept, size_t count_kept,
                     size_t count_below)
{
    count_kept = min_size(count_kept, UNWIND_MEMO - count_above - count_below);
    struct unwind_call *end = memo->call + UNWIND_MEMO - count_below;
    struct unwind_call *to = end - count_kept;
    if (to != kept)
        memmove(to, kept, count_kept * sizeof *to);
    memcpy(end, memo->below, count_below * sizeof *to);
    memcpy(to - count_above, memo->above, count_above * sizeof *to);
    memo->count = (uint32_t)(count_above + count_kept + count_below);
}

/* To ask for a stack's pages each time would cost as much as all the rest. */
static void begin_again(struct unwind_memo *memo, struct window *window, uintptr_t sp)
{
    uint32_t age = rules_age();
    if (memo->age != age)
        memo->count = 0;
    memo->age = age;
    bool is_known = sp - memo->sure_at < memo->sure_end - memo->sure_at && memo->left > 0;
    memo->left = is_known ? memo->left - 1 : SURE_FOR;
    if (is_known) {
        window->sure_at = memo->sure_at;
        window->sure_end = memo->sure_end;
    }
}

size_t unwind_again(const struct os_frame *from, struct unwind_memo *memo, uintptr_t *calls, size_t most)
{
    const struct unwind_call *end = memo->call + UNWIND_MEMO;
    struct walk walk;
    open_window(&walk.window, UNWIND_SOUND, NULL, from->sp);
    begin_again(memo, &walk.window, from->sp);
    walk.frame = *from;
    walk.is_call = false;
    walk.more = from->pc != 0;
    walk.calls = calls;
    walk.count = 0;
    walk.most = min_size(most, UNWIND_MEMO);

    const struct unwind_call *kept = walk_to_known(&walk, end - memo->count, end, memo->above);
    const struct unwind_call *kept_end = kept;
    size_t count_above = walk.count;
    size_t count_below = 0;
    if (kept < end) {
        kept_end = walk_along(&walk, kept, end);
        count_below = walk_on(&walk, kept_end, end, memo->below);
        if (count_below == 0)
            kept_end = end; /* what was not asked for is as likely as before */
    }
    store_relaxed(&memo->sure_at, walk.window.sure_at);
    memo->sure_end = walk.window.sure_end;
    if (!walk.more && !walk.window.at_start) /* it leads nowhere, perhaps beyond the stack, where the program may unmap what it likes */
        memo->left = 0;
    remember(memo, count_above, kept, (size_t)(kept_end - kept), count_below);
    return walk.count;
}
