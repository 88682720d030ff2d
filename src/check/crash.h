/*
 * Crash reports (HAKMEM_CRASH=1): what the library knows when the process is about to die, in the report. Of SIGSEGV, SIGBUS and
 * SIGABRT, and after the line of its own fatal errors. Allocates nothing; takes no lock but in check_note_changed (check.h).
 */
#ifndef HAK_CHECK_CRASH_H
#define HAK_CHECK_CRASH_H

#include <stdint.h>

/* From now on. At the start of the program, or by whoever asks for it later (api/check.c). Handlers that the program installs for
 * these signals take the place of ours; those from before are called after it. */
void crash_start(void);

/* In the child of a fork: whoever wrote a report is not there. */
void crash_forked(void);

/* Waits while another thread writes its report, as *word says by `value`: the process must not end meanwhile. Not for ever, and
 * once: then the word says `after`. */
void crash_wait_while(uint32_t *word, uint32_t value, uint32_t after);

/* The calling thread writes a report of its own between the two, and then ends the process. If another is at it just now, it waits. */
void crash_begin_report(void);
void crash_end_report(void);

#endif
