#include "observe/rules.h"

#include <stddef.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* 64 KiB, of which the first 2^room are used: twice as many whenever half of them are. Who takes few stacks touches a page. */
enum { ROOM_LEAST = 7, ROOM_MOST = 12 };

/* Above all addresses. */
enum { AGE_SHIFT = 48 };

/* The key, changed by the rule: only both together fit. A packed rule is never 0. */
struct entry {
    uint64_t check;
    uint64_t packed;
};

static struct entry entries[1 << ROOM_MOST];
static uint32_t room = ROOM_LEAST;
static uint32_t noted; /* since there is so much room */
static uint32_t age;   /* part of the keys: entries of another do not fit */

/* From the low end: one bit that is always set, the three of the CFA, then offsets with their places. */
enum {
    IS_RULE = 1 << 0,
    BY_FP = 1 << 1,
    IN_MEMORY = 1 << 2,
    CFA_SHIFT = 4,
    CFA_BITS = 20,
    FP_SHIFT = CFA_SHIFT + CFA_BITS,
    RA_SHIFT = FP_SHIFT + 20,
    SAVED_BITS = 17,
    PLACE_BITS = 3,
};

static uint64_t field(int64_t value, unsigned bits)
{
    return (uint64_t)value & (((uint64_t)1 << bits) - 1);
}

static int32_t signed_field(uint64_t packed, unsigned shift, unsigned bits)
{
    return (int32_t)((int64_t)(packed << (64 - bits - shift)) >> (64 - bits));
}

static uint64_t pack_saved(const struct cfi_saved *saved)
{
    return field(saved->offset, SAVED_BITS) | (uint64_t)saved->place << SAVED_BITS;
}

static struct cfi_saved unpack_saved(uint64_t packed, unsigned shift)
{
    return (struct cfi_saved){.place = (enum cfi_place)(packed >> (shift + SAVED_BITS) & ((1 << PLACE_BITS) - 1)),
                              .offset = signed_field(packed, shift, SAVED_BITS)};
}

static struct cfi_rule unpack(uint64_t packed)
{
    return (struct cfi_rule){.cfa_is_known = true,
                             .cfa_by_fp = (packed & BY_FP) != 0,
                             .cfa_in_memory = (packed & IN_MEMORY) != 0,
                             .cfa_offset = signed_field(packed, CFA_SHIFT, CFA_BITS),
                             .fp = unpack_saved(packed, FP_SHIFT),
                             .ra = unpack_saved(packed, RA_SHIFT)};
}

static uint64_t pack(const struct cfi_rule *rule)
{
    return (uint64_t)IS_RULE | (rule->cfa_by_fp ? BY_FP : 0) | (rule->cfa_in_memory ? IN_MEMORY : 0)
           | field(rule->cfa_offset, CFA_BITS) << CFA_SHIFT | pack_saved(&rule->fp) << FP_SHIFT
           | pack_saved(&rule->ra) << RA_SHIFT;
}

static bool is_same(const struct cfi_rule *a, const struct cfi_rule *b)
{
    return a->cfa_offset == b->cfa_offset && a->fp.offset == b->fp.offset && a->ra.offset == b->ra.offset;
}

/* A frame of a MiB does not fit, nor does a signal's: those are looked up each time. */
static bool fits(const struct cfi_rule *rule)
{
    struct cfi_rule again = unpack(pack(rule));
    return !rule->is_signal && is_same(rule, &again);
}

static uint64_t key_of(const uint8_t *eh_frame_hdr, uintptr_t pc)
{
    return ((uint64_t)pc + ((uint64_t)rules_age() << AGE_SHIFT)) * 0x9e3779b97f4a7c15u + (uintptr_t)eh_frame_hdr;
}

void rules_forget(void)
{
    (void)add_relaxed(&age, 1u);
}

uint32_t rules_age(void)
{
    return load_relaxed(&age);
}

/* Threads that make room at once make it once or twice. What is then looked for in another place is looked up again. */
static void make_room(uint32_t now)
{
    if (now < ROOM_MOST && add_relaxed(&noted, 1u) + 1 >= (uint32_t)1 << (now - 1)) {
        store_relaxed(&noted, 0u);
        store_relaxed(&room, now + 1);
    }
}

bool rules_find(const uint8_t *eh_frame_hdr, uintptr_t pc, struct cfi_rule *rule)
{
    uint64_t key = key_of(eh_frame_hdr, pc);
    uint32_t now = load_relaxed(&room);
    struct entry *entry = &entries[key >> (64 - ROOM_MOST) & (((uint32_t)1 << now) - 1)];
    uint64_t packed = load_relaxed(&entry->packed);
    if (LIKELY((load_relaxed(&entry->check) ^ packed) == key && packed != 0)) {
        *rule = unpack(packed);
        return true;
    }
    if (!cfi_find(eh_frame_hdr, pc, rule))
        return false;
    if (fits(rule)) {
        packed = pack(rule);
        store_relaxed(&entry->packed, packed);
        store_relaxed(&entry->check, key ^ packed);
        make_room(now);
    }
    return true;
}
