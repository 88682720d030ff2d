/* What a test asks the system about its own process. Nothing here allocates. */
#ifndef HAK_TEST_PROCESS_H
#define HAK_TEST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Resident memory in bytes. */
size_t process_rss_bytes(void);

/* True if a mapped file's path contains `name`. */
bool process_maps_file(const char *name);

/* Monotonic time in milliseconds. */
uint64_t process_now_ms(void);

#endif
