#include "observe/cfi.h"

#include <stddef.h>
#include <string.h>

#include "os/frame.h"

/* How a pointer is written. */
enum {
    ENCODING_FORMAT = 0x0f,
    ENCODING_DIRECT = 0x7f, /* all but whether it is the address of the pointer */
    ENCODING_UNSIGNED_4 = 0x03,
    ENCODING_SIGNED_4 = 0x0b,
    ENCODING_SIGNED_8 = 0x0c,
    ENCODING_ABSOLUTE = 0x00,
    ENCODING_RELATIVE = 0x10,         /* to where it stands */
    ENCODING_TABLE = 0x3b,            /* signed, 4 bytes, relative to .eh_frame_hdr: what every linker writes */
    ENCODING_NONE = 0xff,
};

enum {
    ADVANCE = 0x40, /* these three have an operand in their low six bits */
    OFFSET = 0x80,
    RESTORE = 0xc0,

    NOP = 0x00,
    SET_LOC = 0x01,
    ADVANCE_1 = 0x02,
    ADVANCE_2 = 0x03,
    ADVANCE_4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SF = 0x11,
    DEF_CFA_SF = 0x12,
    DEF_CFA_OFFSET_SF = 0x13,
    AARCH64_NEGATE_RA_STATE = 0x2d,
    GNU_ARGS_SIZE = 0x2e,

    OP_DEREF = 0x06,
};

enum { REMEMBERED_MOST = 8 };

/* Bytes from which things are read one after another. Past the end everything is 0, and `bad` is set. */
struct bytes {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static uint64_t read_fixed(struct bytes *bytes, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(bytes->end - bytes->at) < size) {
        bytes->bad = true;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    bytes->at += size;
    return value;
}

static uint8_t read_byte(struct bytes *bytes)
{
    return (uint8_t)read_fixed(bytes, 1);
}

/* LEB128; beyond 64 bits it is bad. */
static uint64_t read_unsigned(struct bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_byte(bytes);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    bytes->bad = true;
    return 0;
}

static int64_t read_signed(struct bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_byte(bytes);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            unsigned bits = shift + 7;
            return bits < 64 && (byte & 0x40) != 0 ? (int64_t)(value | ~(uint64_t)0 << bits) : (int64_t)value;
        }
    }
    bytes->bad = true;
    return 0;
}

static void skip(struct bytes *bytes, uint64_t count)
{
    if (count > (uint64_t)(bytes->end - bytes->at))
        bytes->bad = true;
    else
        bytes->at += count;
}

/* A pointer, absolute or relative to where it stands. */
static uintptr_t read_pointer(struct bytes *bytes, uint8_t encoding)
{
    uintptr_t base = (encoding & 0x70) == ENCODING_RELATIVE ? (uintptr_t)bytes->at : 0;
    if ((encoding & 0x70) != ENCODING_RELATIVE && (encoding & 0x70) != ENCODING_ABSOLUTE)
        bytes->bad = true;
    switch (encoding & ENCODING_FORMAT) {
    case ENCODING_SIGNED_4:
        return base + (uintptr_t)(int32_t)read_fixed(bytes, 4);
    case ENCODING_UNSIGNED_4:
        return base + (uintptr_t)read_fixed(bytes, 4);
    case ENCODING_ABSOLUTE:
    case 0x04:
    case ENCODING_SIGNED_8:
        return base + (uintptr_t)read_fixed(bytes, 8);
    default:
        bytes->bad = true;
        return 0;
    }
}

/* What the entries of one compilation unit share. */
struct common {
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer_encoding;
    bool augmented;
    bool is_signal;
    struct bytes program;
};

/* The entry at `at`, without its length. */
static struct bytes entry_at(const uint8_t *at)
{
    uint32_t length;
    memcpy(&length, at, sizeof length);
    /* The long form has never been seen in .eh_frame. */
    if (length == 0 || length == UINT32_MAX)
        return (struct bytes){.bad = true};
    return (struct bytes){.at = at + sizeof length, .end = at + sizeof length + length};
}

static void read_augmentation(struct bytes *bytes, const char *letters, struct common *common)
{
    for (; *letters != '\0'; letters++) {
        switch (*letters) {
        case 'R':
            common->pointer_encoding = read_byte(bytes);
            break;
        case 'P': {
            uint8_t encoding = read_byte(bytes);
            (void)read_pointer(bytes, encoding & ENCODING_DIRECT);
            break;
        }
        case 'L':
            (void)read_byte(bytes);
            break;
        case 'S':
            common->is_signal = true;
            break;
        case 'B': /* AArch64: signs return addresses with the other key */
            break;
        default:
            bytes->bad = true;
        }
    }
}

static bool read_common(const uint8_t *at, struct common *common)
{
    struct bytes bytes = entry_at(at);
    *common = (struct common){0};
    if (bytes.bad || read_fixed(&bytes, 4) != 0)
        return false;
    uint8_t version = read_byte(&bytes);
    const char *letters = (const char *)bytes.at;
    while (!bytes.bad && read_byte(&bytes) != 0)
        ;
    common->code_align = read_unsigned(&bytes);
    common->data_align = read_signed(&bytes);
    uint64_t ra = version == 1 ? read_byte(&bytes) : read_unsigned(&bytes);
    if (bytes.bad || (version != 1 && version != 3) || ra != OS_CFI_RA)
        return false;
    common->augmented = letters[0] == 'z';
    if (common->augmented) {
        uint64_t length = read_unsigned(&bytes);
        struct bytes data = bytes;
        skip(&bytes, length);
        read_augmentation(&data, letters + 1, common);
        bytes.bad |= data.bad || data.at > bytes.at;
    } else if (letters[0] != '\0') {
        return false;
    }
    common->program = bytes;
    return !bytes.bad;
}

struct state {
    struct cfi_rule now;
    struct cfi_rule initial;
    struct cfi_rule remembered[REMEMBERED_MOST];
    unsigned depth;
    uintptr_t at;
};

static struct cfi_saved *saved(struct cfi_rule *rule, uint64_t number)
{
    if (number == OS_CFI_FP)
        return &rule->fp;
    return number == OS_CFI_RA ? &rule->ra : NULL;
}

static void set(struct state *state, uint64_t number, enum cfi_place place, int64_t offset)
{
    struct cfi_saved *one = saved(&state->now, number);
    if (one != NULL)
        *one = (struct cfi_saved){place, (int32_t)offset};
}

static void restore(struct state *state, uint64_t number)
{
    struct cfi_saved *one = saved(&state->now, number);
    if (one != NULL)
        *one = *saved(&state->initial, number);
}

/* An offset as it is written, in units of the data alignment. No sensible one is beyond 32 bits. */
static int32_t scaled(uint64_t factor, const struct common *common)
{
    return (int32_t)(factor * (uint64_t)common->data_align);
}

/* While it is set up, a frame may be found by registers that are not followed here. */
static void set_cfa_register(struct cfi_rule *rule, uint64_t number)
{
    rule->cfa_is_known = number == OS_CFI_FP || number == OS_CFI_SP;
    rule->cfa_by_fp = number == OS_CFI_FP;
    rule->cfa_in_memory = false;
}

/* Of the expressions that compilers write: a register and an offset, and perhaps what is found there. */
static struct bytes read_expression(struct bytes *bytes)
{
    struct bytes expression = *bytes;
    uint64_t length = read_unsigned(&expression);
    *bytes = expression;
    skip(bytes, length);
    expression.end = bytes->at;
    return expression;
}

static void set_cfa_expression(struct cfi_rule *rule, struct bytes expression)
{
    uint8_t base = read_byte(&expression);
    rule->cfa_by_fp = base == OS_CFI_BREG_FP;
    rule->cfa_offset = (int32_t)read_signed(&expression);
    rule->cfa_in_memory = expression.at < expression.end && read_byte(&expression) == OP_DEREF;
    rule->cfa_is_known =
        (rule->cfa_by_fp || base == OS_CFI_BREG_SP) && !expression.bad && expression.at == expression.end;
}

static void set_expression(struct state *state, uint64_t number, struct bytes expression)
{
    bool by_fp = read_byte(&expression) == OS_CFI_BREG_FP;
    int64_t offset = read_signed(&expression);
    bool simple = by_fp && !expression.bad && expression.at == expression.end;
    set(state, number, simple ? CFI_AT_FP : CFI_UNKNOWN, offset);
}

static void run_extended(struct bytes *bytes, const struct common *common, struct state *state, uint8_t operation)
{
    uint64_t number;
    switch (operation) {
    case NOP:
    case AARCH64_NEGATE_RA_STATE: /* the bits of a signature are stripped by who reads return addresses */
        break;
    case ADVANCE_1:
    case ADVANCE_2:
    case ADVANCE_4:
        state->at += read_fixed(bytes, (size_t)1 << (operation - ADVANCE_1)) * common->code_align;
        break;
    case OFFSET_EXTENDED:
        number = read_unsigned(bytes);
        set(state, number, CFI_AT_CFA, scaled(read_unsigned(bytes), common));
        break;
    case OFFSET_EXTENDED_SF:
        number = read_unsigned(bytes);
        set(state, number, CFI_AT_CFA, scaled((uint64_t)read_signed(bytes), common));
        break;
    case RESTORE_EXTENDED:
        restore(state, read_unsigned(bytes));
        break;
    case UNDEFINED:
        set(state, read_unsigned(bytes), CFI_UNDEFINED, 0);
        break;
    case SAME_VALUE:
        set(state, read_unsigned(bytes), CFI_SAME, 0);
        break;
    case REMEMBER_STATE:
        bytes->bad |= state->depth == REMEMBERED_MOST;
        if (!bytes->bad)
            state->remembered[state->depth++] = state->now;
        break;
    case RESTORE_STATE:
        bytes->bad |= state->depth == 0;
        if (!bytes->bad)
            state->now = state->remembered[--state->depth];
        break;
    case DEF_CFA:
        set_cfa_register(&state->now, read_unsigned(bytes));
        state->now.cfa_offset = (int32_t)read_unsigned(bytes);
        break;
    case DEF_CFA_SF:
        set_cfa_register(&state->now, read_unsigned(bytes));
        state->now.cfa_offset = scaled((uint64_t)read_signed(bytes), common);
        break;
    case DEF_CFA_REGISTER:
        set_cfa_register(&state->now, read_unsigned(bytes));
        break;
    case DEF_CFA_OFFSET:
        state->now.cfa_offset = (int32_t)read_unsigned(bytes);
        break;
    case DEF_CFA_OFFSET_SF:
        state->now.cfa_offset = scaled((uint64_t)read_signed(bytes), common);
        break;
    case DEF_CFA_EXPRESSION:
        set_cfa_expression(&state->now, read_expression(bytes));
        break;
    case EXPRESSION:
        number = read_unsigned(bytes);
        set_expression(state, number, read_expression(bytes));
        break;
    case GNU_ARGS_SIZE:
        (void)read_unsigned(bytes);
        break;
    default: /* SET_LOC, REGISTER and what is rarer: not written by compilers for these registers */
        bytes->bad = true;
    }
}

/* Until the rule for `pc` is complete. */
static bool run(struct bytes bytes, const struct common *common, struct state *state, uintptr_t pc)
{
    while (bytes.at < bytes.end && !bytes.bad) {
        uint8_t operation = read_byte(&bytes);
        uint8_t operand = operation & 0x3f;
        switch (operation & 0xc0) {
        case ADVANCE:
            state->at += operand * common->code_align;
            break;
        case OFFSET:
            set(state, operand, CFI_AT_CFA, scaled(read_unsigned(&bytes), common));
            break;
        case RESTORE:
            restore(state, operand);
            break;
        default:
            run_extended(&bytes, common, state, operation);
        }
        if (state->at > pc)
            break;
    }
    return !bytes.bad;
}

/* The entry of the last function that starts at or before `pc`; NULL: there is none. */
static const uint8_t *find_entry(const uint8_t *eh_frame_hdr, uintptr_t pc)
{
    struct bytes bytes = {.at = eh_frame_hdr, .end = eh_frame_hdr + 64};
    uint8_t version = read_byte(&bytes);
    uint8_t frame_encoding = read_byte(&bytes);
    uint8_t count_encoding = read_byte(&bytes);
    uint8_t table_encoding = read_byte(&bytes);
    if (version != 1 || count_encoding == ENCODING_NONE || table_encoding != ENCODING_TABLE)
        return NULL;
    (void)read_pointer(&bytes, frame_encoding);
    size_t count = read_pointer(&bytes, count_encoding);
    if (bytes.bad)
        return NULL;
    const uint8_t *table = bytes.at;
    int64_t wanted = (int64_t)(pc - (uintptr_t)eh_frame_hdr);
    size_t low = 0;
    size_t high = count;
    int32_t pair[2];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        memcpy(pair, table + middle * sizeof pair, sizeof pair);
        if (pair[0] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    memcpy(pair, table + (low - 1) * sizeof pair, sizeof pair);
    return eh_frame_hdr + pair[1];
}

bool cfi_find(const uint8_t *eh_frame_hdr, uintptr_t pc, struct cfi_rule *rule)
{
    const uint8_t *at = find_entry(eh_frame_hdr, pc);
    struct bytes bytes = at != NULL ? entry_at(at) : (struct bytes){.bad = true};
    if (bytes.bad)
        return false;
    const uint8_t *here = bytes.at;
    uint32_t back = (uint32_t)read_fixed(&bytes, 4);
    struct common common;
    if (bytes.bad || back == 0 || !read_common(here - back, &common))
        return false;
    uintptr_t start = read_pointer(&bytes, common.pointer_encoding);
    uintptr_t length = read_pointer(&bytes, common.pointer_encoding & ENCODING_FORMAT);
    if (bytes.bad || pc - start >= length)
        return false;
    if (common.augmented)
        skip(&bytes, read_unsigned(&bytes));
    if (common.is_signal) {
        *rule = (struct cfi_rule){.is_signal = true};
        return true;
    }
    struct state state = {.at = start};
    if (bytes.bad || !run(common.program, &common, &state, UINTPTR_MAX))
        return false;
    state.initial = state.now;
    if (!run(bytes, &common, &state, pc))
        return false;
    *rule = state.now;
    return rule->cfa_is_known && rule->ra.place != CFI_UNKNOWN;
}
