/* A page of memory that is a file too, so that other processes may map it. */
#ifndef HAK_OS_PAGE_H
#define HAK_OS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A new file of the user's alone, of `bytes` zeros, mapped shared; a file that is there already is replaced. NULL: refused,
 * with the number of the error. */
void *page_make(const char *path, size_t bytes, int *error);

/* Is there memory for these bytes of one? In a full file system a store is answered by SIGBUS, a system call by an error: so
 * such a call writes to each page first. What stands in them is lost. */
bool page_has_room(char *at, size_t bytes);

void page_remove(const char *path);

/* No longer in this process: the file is another's. */
void page_forget(void *page, size_t bytes);

/* When this process was started, as /proc counts (field 22 of its stat); 0: that cannot be read. */
uint64_t page_process_start(void);

#endif
