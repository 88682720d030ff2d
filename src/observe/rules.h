/*
 * Rules of call frame information that were looked up before (cfi.h). One table for all threads, without a lock: an entry
 * that is read while another thread writes it does not fit its check, and counts as not there.
 */
#ifndef HAK_OBSERVE_RULES_H
#define HAK_OBSERVE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "observe/cfi.h"

/* cfi_find. Async-signal-safe. A module that takes the very place of another, which has been unloaded, with its table at the
 * same address, may be taken for that. */
bool rules_find(const uint8_t *eh_frame_hdr, uintptr_t pc, struct cfi_rule *rule);

#endif
