/* What the process holds (struct hak_stats), for the functions that say so in libc's terms and in ours. */
#ifndef HAK_API_STATS_H
#define HAK_API_STATS_H

#include <stddef.h>

#include "hakmem.h"

/* Counts are exact while no other thread allocates. */
void stats_read(struct hak_stats *stats);

/* Bytes of the heap that are in memory: the kernel is asked, for each superslab. */
size_t stats_resident_bytes(void);

#endif
