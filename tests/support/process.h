/* What a test asks the system about its own process. Nothing here allocates. */
#ifndef HAK_TEST_PROCESS_H
#define HAK_TEST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The beginning of a file as text, of less than `most` characters. Returns how many; 0: it cannot be read. */
size_t process_read(const char *path, char *text, size_t most);

/* Resident memory in bytes. */
size_t process_rss_bytes(void);

/* The sizes of all mappings together; an emulator's own are not among them. */
size_t process_mapped_bytes(void);

/* True if a mapped file's path contains `name`. */
bool process_maps_file(const char *name);

/* Has the mapping there this flag, two letters of VmFlags in smaps? */
bool process_mapping_has(const void *at, const char *flag);

/* How much of that mapping is in huge pages. */
size_t process_mapping_huge_kib(const void *at);

/* Is this process run by an emulator of the processor, and not by the processor? */
bool process_is_emulated(void);

/* Can libc tell which loaded code holds an address, without a lock? Else stacks are followed in the program itself only. */
bool process_finds_modules(void);

/* Runs a program of this build with one argument in place of this process. Returns if that fails. */
void process_become(const char *program, const char *argument);

/* The limit on the size of files that it writes (RLIMIT_FSIZE); RLIM_INFINITY: none. */
void process_limit_files(size_t bytes);

/* Monotonic time in milliseconds. */
uint64_t process_now_ms(void);

#endif
