#include "observe/unwind.h"

#include <string.h>

#include "base/bits.h"
#include "observe/cfi.h"

/* What has been copied of the stack, unless it is read where it is. */
struct window {
    enum unwind_trust trust;
    uintptr_t limit; /* beyond it not even a sound stack is known to be there */
    uintptr_t at;
    size_t length;
    char bytes[1024];
};

enum { WORD = sizeof(uintptr_t), PAGE_LEAST = 4096 };

/* A larger frame is not one, on a sound stack. */
#define FRAME_MOST (64 * MIB)

/* Sanitizers think that a function has no business in its caller's frame. */
UNSANITIZED static uintptr_t word_at(uintptr_t at)
{
    return *(const volatile uintptr_t *)at;
}

static bool read_word(struct window *window, uintptr_t at, uintptr_t *word)
{
    if (at % WORD != 0)
        return false;
    if (window->trust == UNWIND_SOUND) {
        if (at < window->limit)
            *word = word_at(at);
        return at < window->limit;
    }
    if (at - window->at >= window->length) {
        window->at = at;
        window->length = align_down(os_read(at, window->bytes, sizeof window->bytes), WORD);
        if (window->length == 0)
            return false;
    }
    memcpy(word, window->bytes + (at - window->at), WORD);
    return true;
}

static bool read_saved(struct window *window, const struct cfi_saved *saved, uintptr_t cfa, uintptr_t fp, uintptr_t *value)
{
    switch (saved->place) {
    case CFI_SAME:
        return true;
    case CFI_AT_CFA:
        return read_word(window, cfa + (uintptr_t)(intptr_t)saved->offset, value);
    case CFI_AT_FP:
        return read_word(window, fp + (uintptr_t)(intptr_t)saved->offset, value);
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
    if (cfa - frame->sp > FRAME_MOST || (rule->cfa_in_memory && !read_word(window, cfa, &cfa)))
        return false;
    struct os_frame caller = {.sp = cfa, .fp = frame->fp, .ra = frame->ra};
    if (cfa - frame->sp > FRAME_MOST || !read_saved(window, &rule->ra, cfa, frame->fp, &caller.ra))
        return false;
    if (!read_saved(window, &rule->fp, cfa, frame->fp, &caller.fp))
        caller.fp = 0;
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
    *frame = (struct os_frame){.pc = os_frame_address(ra), .sp = frame->fp + 2 * WORD, .fp = fp, .ra = ra};
    return true;
}

/* One step towards the start of the thread; *is_call: what is found there is a return address. */
static bool step(struct window *window, struct os_frame *frame, bool *is_call)
{
    struct os_module module;
    struct cfi_rule rule;
    /* A call may be the last instruction of a function: where it returns to is another's. */
    uintptr_t pc = *is_call ? frame->pc - 1 : frame->pc;
    bool known = os_find_module(pc, &module);
    *is_call = true;
    if (!known || module.unwinding == NULL || !cfi_find(module.unwinding, pc, &rule))
        return follow_frame_pointer(window, frame);
    if (!rule.is_signal)
        return follow_rule(window, &rule, frame);
    *is_call = false;
    bool sure = window->trust == UNWIND_SOUND && window->limit == UINTPTR_MAX;
    return os_frame_interrupted_at(frame->sp, sure, frame);
}

size_t unwind(const struct os_frame *from, enum unwind_trust trust, uintptr_t *calls, size_t most)
{
    struct window window;
    window.trust = trust;
    window.limit = UINTPTR_MAX;
    window.length = 0;
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
