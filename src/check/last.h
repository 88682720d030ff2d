/* The last operations of each thread, for reports of crashes in check mode. */
#ifndef HAK_CHECK_LAST_H
#define HAK_CHECK_LAST_H

#include <stdbool.h>
#include <stddef.h>

/* Notes that this thread, of this number, has allocated or freed a block. Takes no lock. */
void last_note(bool freed, int thread, const void *p, size_t size);

/* Writes those of this thread that are still known to the report, the last one first. Takes no lock. */
void last_write(int thread);

#endif
