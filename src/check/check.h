/*
 * Check mode (HAKMEM_CHECK): every heap is closed, so that every operation comes to its door, and requests are served from
 * here: blocks with zones around them (zones.h), in memory of their own (run.h), that wait in quarantine when they are freed.
 * Each free is verified at once. What was allocated before goes back to where it came from, verified too.
 */
#ifndef HAK_CHECK_CHECK_H
#define HAK_CHECK_CHECK_H

#include <stddef.h>

/* From now on, as policy.checks says. By the first thread of the program, or by whoever asks for it later (api/check.c). */
void check_start(void);

/* Verifies the zones of all live blocks and the content of those in quarantine. The first fault ends the process with a
 * report. Returns how many blocks were looked at; 0 if check mode is off. */
size_t check_all(void);

/* For a crash, which may have come of it: notes the first block that was changed, or whose zones were. Nothing in a process of several
 * threads. Async-signal-safe. */
void check_note_changed(void);

#endif
