/* Statistics in files: an object a line, whole, whoever else appends to the file. */
#ifndef HAK_API_STATS_FILE_H
#define HAK_API_STATS_FILE_H

#include <stdbool.h>

/* stats_json into a file; see out_to_file. With all decisions that are kept, but not in a series. 0, or an error's number. */
int stats_write(const char *path, bool append);

/* The same into an open file. */
int stats_write_to(int file);

#endif
