/* The statistics as one JSON object on one line: schema "hakmem-stats" (docs/observability.md explains each field). */
#ifndef HAK_API_STATS_JSON_H
#define HAK_API_STATS_JSON_H

#include "os/out.h"

/* At the start of the program, from which its age is counted. */
void stats_begin(void);

/* Inside the door, or with no heap. */
void stats_json(struct out *out);

/* The same into a file; see out_to_file. 0, or an error's number. */
int stats_write(const char *path, bool append);

/* The same into an open file. */
int stats_write_to(int file);

#endif
