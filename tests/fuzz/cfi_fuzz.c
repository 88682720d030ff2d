/*
 * observe/cfi.h: a function's entry as a compiler would write it, its instructions made from the input and carried out by a
 * model beside; or any bytes in their place, which must lead nowhere else. The tables lie in memory of just their size, so
 * that a sanitizer sees who reads beyond.
 */
#include "observe/cfi.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fuzz.h"
#include "os/frame.h"

/* DWARF 5, 6.4.2. The first three have an operand in their low six bits. */
enum {
    ADVANCE_LOC = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    ADVANCE_LOC1 = 0x02,
    OFFSET_EXTENDED = 0x05,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_OFFSET_SF = 0x13,
};

enum { DATA_ALIGN = -8, CODE_BYTES = 4096, DEPTH = 4, PROGRAM_MOST = 2048, TABLE_MOST = PROGRAM_MOST + 128 };

/* ---- Bytes that are written one after another. */

struct out {
    uint8_t bytes[TABLE_MOST];
    size_t length;
};

static void put(struct out *out, uint64_t value, unsigned bytes)
{
    CHECK(out->length + bytes <= sizeof out->bytes);
    memcpy(out->bytes + out->length, &value, bytes);
    out->length += bytes;
}

static void put_unsigned(struct out *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(out, value | 0x80, 1);
    put(out, value, 1);
}

static void put_signed(struct out *out, int64_t value)
{
    for (; value < -0x40 || value >= 0x40; value >>= 7)
        put(out, (uint64_t)value | 0x80, 1);
    put(out, (uint64_t)value & 0x7f, 1);
}

/* ---- The instructions. */

struct model {
    struct cfi_rule now;
    struct cfi_rule initial;
    struct cfi_rule stack[DEPTH];
    unsigned depth;
    uint64_t at;   /* where the rule is in force from, bytes into the function */
    uint64_t pc;   /* for which it is wanted */
    bool has_code; /* what all functions share does not */
    bool complete; /* what follows is of code behind that */
};

static unsigned read_register(struct input *input)
{
    static const unsigned registers[] = {OS_CFI_SP, OS_CFI_FP, OS_CFI_RA, 3};
    return registers[input_byte(input) % 4];
}

static struct cfi_saved *saved(struct cfi_rule *rule, unsigned number)
{
    static struct cfi_saved other;
    return number == OS_CFI_FP ? &rule->fp : number == OS_CFI_RA ? &rule->ra : &other;
}

static void set_cfa(struct cfi_rule *rule, unsigned number)
{
    rule->cfa_is_known = number == OS_CFI_SP || number == OS_CFI_FP;
    rule->cfa_by_fp = number == OS_CFI_FP;
}

static void advance(struct out *out, struct model *model, struct input *input)
{
    uint8_t by = input_byte(input);
    if (by < 64) {
        put(out, (uint64_t)ADVANCE_LOC | by, 1);
    } else {
        put(out, ADVANCE_LOC1, 1);
        put(out, by, 1);
    }
    model->at += by;
    model->complete |= model->at > model->pc;
}

static void save(struct out *out, struct cfi_rule *rule, unsigned number, struct input *input)
{
    uint64_t factor = input_byte(input);
    if (factor % 2 == 0) {
        put(out, (uint64_t)OFFSET | number, 1);
    } else {
        put(out, OFFSET_EXTENDED, 1);
        put_unsigned(out, number);
    }
    put_unsigned(out, factor);
    *saved(rule, number) = (struct cfi_saved){CFI_AT_CFA, (int32_t)factor * DATA_ALIGN};
}

static void define_cfa(struct out *out, struct cfi_rule *rule, struct input *input)
{
    unsigned number = read_register(input);
    uint64_t offset = input_number(input, 2);
    switch (input_byte(input) % 4) {
    case 0:
        put(out, DEF_CFA, 1);
        put_unsigned(out, number);
        put_unsigned(out, offset);
        set_cfa(rule, number);
        break;
    case 1:
        put(out, DEF_CFA_REGISTER, 1);
        put_unsigned(out, number);
        set_cfa(rule, number);
        return;
    case 2:
        put(out, DEF_CFA_OFFSET, 1);
        put_unsigned(out, offset);
        break;
    default:
        put(out, DEF_CFA_OFFSET_SF, 1);
        put_signed(out, (int64_t)offset - 0x8000);
        rule->cfa_offset = ((int32_t)offset - 0x8000) * DATA_ALIGN;
        return;
    }
    rule->cfa_offset = (int32_t)offset;
}

static void keep(struct out *out, struct model *model, struct cfi_rule *rule, bool wanted)
{
    if (wanted && model->depth < DEPTH) {
        put(out, REMEMBER_STATE, 1);
        model->stack[model->depth++] = *rule;
    } else if (!wanted && model->depth > 0) {
        put(out, RESTORE_STATE, 1);
        *rule = model->stack[--model->depth];
    }
}

/* Those behind the code that is asked for change another rule, which nobody looks at. */
static void write_instruction(struct out *out, struct model *model, struct input *input)
{
    struct cfi_rule beyond = model->now;
    struct cfi_rule *rule = model->complete ? &beyond : &model->now;
    uint8_t kind = input_byte(input) % 8;
    unsigned number = read_register(input);
    switch (kind) {
    case 0:
        if (model->has_code)
            advance(out, model, input);
        break;
    case 1:
    case 2:
        save(out, rule, number, input);
        break;
    case 3:
        put(out, (uint64_t)RESTORE | number, 1);
        *saved(rule, number) = *saved(&model->initial, number);
        break;
    case 4:
        put(out, number % 2 == 0 ? UNDEFINED : SAME_VALUE, 1);
        put_unsigned(out, number);
        *saved(rule, number) = (struct cfi_saved){number % 2 == 0 ? CFI_UNDEFINED : CFI_SAME, 0};
        break;
    case 5:
        keep(out, model, rule, input_byte(input) % 2 == 0);
        break;
    default:
        define_cfa(out, rule, input);
    }
}

/* ---- The tables. */

/* .eh_frame_hdr with one row, the entry that functions share, and that of one function. Returns where its program starts. */
static void begin_tables(struct out *out, const struct out *common)
{
    enum { HEADER = 4 + 4 + 4 + 8, CODE_AT = -(2 * CODE_BYTES) };
    const uint8_t letters[] = {'z', 'R', 0};
    size_t common_bytes = 4 + 1 + sizeof letters + 1 + 1 + 1 + 1 + 1 + common->length;
    put(out, 1, 1);           /* version */
    put(out, 0x3b031b, 3);    /* how pointers, counts and the table are written */
    put(out, HEADER, 4);
    put(out, 1, 4);
    put(out, (uint32_t)CODE_AT, 4);
    put(out, HEADER + 4 + common_bytes, 4);
    put(out, common_bytes, 4);
    put(out, 0, 4);
    put(out, 1, 1); /* version */
    memcpy(out->bytes + out->length, letters, sizeof letters);
    out->length += sizeof letters;
    put_unsigned(out, 1);
    put_signed(out, DATA_ALIGN);
    put(out, OS_CFI_RA, 1);
    put_unsigned(out, 1);
    put(out, 0x1b, 1); /* of the augmentation: pointers are relative, 4 bytes */
    memcpy(out->bytes + out->length, common->bytes, common->length);
    out->length += common->length;
    put(out, 0, 4); /* the length, known at the end */
    put(out, out->length - HEADER, 4);
    put(out, (uint32_t)CODE_AT - (uint32_t)out->length, 4);
    put(out, CODE_BYTES, 4);
    put_unsigned(out, 0);
}

/* How far behind the tables' start the function's code lies; the start of its entry. */
#define CODE ((uintptr_t)0 - 2 * CODE_BYTES)

static size_t entry_of(const struct out *common)
{
    return 20 + 4 + 4 + 1 + 3 + 1 + 1 + 1 + 1 + 1 + common->length;
}

static uint8_t *finish_tables(struct out *out, size_t entry)
{
    uint32_t length = (uint32_t)(out->length - entry - 4);
    memcpy(out->bytes + entry, &length, sizeof length);
    uint8_t *tables = malloc(out->length);
    CHECK(tables != NULL);
    memcpy(tables, out->bytes, out->length);
    return tables;
}

static bool is_same(const struct cfi_saved *a, const struct cfi_saved *b)
{
    return a->place == b->place && a->offset == b->offset;
}

static void check_rule(const uint8_t *tables, const struct model *model)
{
    struct cfi_rule found = {0};
    bool known = model->now.cfa_is_known;
    CHECK(cfi_find(tables, (uintptr_t)tables + CODE + model->pc, &found) == known);
    CHECK(!known || (found.cfa_by_fp == model->now.cfa_by_fp && found.cfa_offset == model->now.cfa_offset));
    CHECK(!known || (is_same(&found.fp, &model->now.fp) && is_same(&found.ra, &model->now.ra)));
    CHECK(!cfi_find(tables, (uintptr_t)tables + CODE - 1, &found));
    CHECK(!cfi_find(tables, (uintptr_t)tables + CODE + CODE_BYTES, &found));
}

static void run_model(struct input *input)
{
    static struct out common;
    static struct out out;
    struct model model = {.pc = UINT64_MAX};
    common.length = out.length = 0;
    for (unsigned i = input_byte(input) % 8; i > 0; i--)
        write_instruction(&common, &model, input);
    model.initial = model.now;
    model.has_code = true;
    model.pc = input_below(input, CODE_BYTES);
    begin_tables(&out, &common);
    while (input_has_more(input) && out.length < PROGRAM_MOST)
        write_instruction(&out, &model, input);
    uint8_t *tables = finish_tables(&out, entry_of(&common));
    check_rule(tables, &model);
    free(tables);
}

static void put_any(struct out *out, struct input *input, size_t bytes)
{
    for (; bytes > 0 && input_has_more(input); bytes--)
        put(out, input_byte(input), 1);
}

/* Both programs, and what comes before them in their entries, are any bytes. */
static void run_any(struct input *input)
{
    static struct out common;
    static struct out out;
    struct cfi_rule rule;
    common.length = out.length = 0;
    put_any(&common, input, input_byte(input));
    uint64_t pc = input_below(input, CODE_BYTES);
    begin_tables(&out, &common);
    size_t changed = input_byte(input) % 32;
    size_t from = entry_of(&common) - common.length - 8 + changed % 8;
    put_any(&out, input, PROGRAM_MOST - out.length);
    if (changed >= 8)
        out.bytes[from] = (uint8_t)changed;
    uint8_t *tables = finish_tables(&out, entry_of(&common));
    (void)cfi_find(tables, (uintptr_t)tables + CODE + pc, &rule);
    free(tables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    if (input_byte(&input) % 2 == 0)
        run_model(&input);
    else
        run_any(&input);
    return 0;
}
