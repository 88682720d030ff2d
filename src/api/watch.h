/*
 * For who watches the process: statistics at its end, by a signal, or as a series in a file; the live page; and what tools
 * outside ask for (heap/control.h). Nothing of it is there unless the user has asked.
 */
#ifndef HAK_API_WATCH_H
#define HAK_API_WATCH_H

/* At the start of the program, options being known. */
void watch_start(void);

/* A heartbeat. */
void watch_beat(void);

/* This process has just been forked. */
void watch_forked(void);

#endif
