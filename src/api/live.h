/*
 * The live page: the newest statistics in a shared file, for tools that may not read the process's memory, and the words by
 * which they ask. The file is DIRECTORY/PID; it goes at exit, and whoever finds one of a process that is gone, or whose start
 * time is another, takes it for stale.
 */
#ifndef HAK_API_LIVE_H
#define HAK_API_LIVE_H

#include <stdbool.h>

struct control_words;

/* Makes the page if this process has none yet (a fork's child makes its own), and brings it up to date. NULL: there can be none.
 * Inside the door, or before there are threads; of threads that come at once the second does nothing. */
struct control_words *live_update(void);

/* The words of the page; NULL: there is none, or it is another process's. */
struct control_words *live_words(void);

/* Has this process tried to make one? Not so a fork's child at first. */
bool live_is_own(void);

/* In a fork's child: the page is its parent's. */
void live_forked(void);

/* Removes it, if it is this process's. */
void live_end(void);

#endif
