/*
 * Crash reports (HAKMEM_CRASH=1): what the library knows when the process is about to die, on stderr. Of SIGSEGV, SIGBUS and
 * SIGABRT, and after the line of its own fatal errors. Allocates nothing, takes no lock.
 */
#ifndef HAK_CHECK_CRASH_H
#define HAK_CHECK_CRASH_H

/* From now on. At the start of the program, by its first thread. Handlers that the program installs for these signals take
 * the place of ours; those from before are called after it. */
void crash_start(void);

/* The calling thread has written a report of its own, and ends the process. */
void crash_is_reported(void);

#endif
