/*
 * Rules of call frame information that were looked up before (cfi.h). One table for all threads, without a lock: an entry
 * that is read while another thread writes it does not fit its check, and counts as not there.
 */
#ifndef HAK_OBSERVE_RULES_H
#define HAK_OBSERVE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "observe/cfi.h"

/* cfi_find. Async-signal-safe. */
bool rules_find(const uint8_t *eh_frame_hdr, uintptr_t pc, struct cfi_rule *rule);

/* A module has been unloaded: another may have taken its very place, with its table at the same address. Async-signal-safe. */
void rules_forget(void);

/* How often that was said: what depends on rules is as old. */
uint32_t rules_age(void);

#endif
