/*
 * Call frame information (DWARF 5, 6.4; the .eh_frame of the Linux Standard Base, 10.6): how to find the caller of the
 * function that holds an address. Pure: reads what it is given, and whatever that leads to in the same module.
 */
#ifndef HAK_OBSERVE_CFI_H
#define HAK_OBSERVE_CFI_H

#include <stdbool.h>
#include <stdint.h>

/* Where a register's value in the caller is. */
enum cfi_place {
    CFI_SAME,      /* still in the register */
    CFI_AT_CFA,    /* in memory, so far from the CFA */
    CFI_AT_FP,     /* in memory, so far from where the frame pointer points */
    CFI_UNDEFINED, /* nowhere: of the return address, there is no caller */
    CFI_UNKNOWN,   /* in a place that this cannot express */
};

struct cfi_saved {
    enum cfi_place place;
    int32_t offset;
};

/* The canonical frame address (CFA) is the stack pointer of the caller, from before the call. */
struct cfi_rule {
    bool is_signal;     /* the code to which signal handlers return */
    bool cfa_is_known;  /* register + offset */
    bool cfa_by_fp;     /* the register is the frame pointer; else the stack pointer */
    bool cfa_in_memory; /* what is found there is the address of it */
    int32_t cfa_offset;
    struct cfi_saved fp;
    struct cfi_saved ra;
};

/* The rule at `pc`, in the module with this .eh_frame_hdr. False: there is none, or none that this knows. */
bool cfi_find(const uint8_t *eh_frame_hdr, uintptr_t pc, struct cfi_rule *rule);

#endif
