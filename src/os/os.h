/*
 * What the allocator asks of the operating system. All calls keep errno, allocate nothing, and may be made
 * under any lock; addresses and sizes are multiples of os_page_size(). Tests link a fake that can refuse
 * any of them, so each caller must live with each refusal.
 *
 * The calls go straight to the kernel: a program that interposes mmap and allocates in it must not be able
 * to call back into an allocator that is in the middle of its work.
 */
#ifndef HAK_OS_OS_H
#define HAK_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/compiler.h"

/* How often the kernel was asked to do what costs time. Any thread. */
enum os_call { OS_MMAP, OS_MUNMAP, OS_MREMAP, OS_MPROTECT, OS_MADVISE, OS_MEMBARRIER, OS_CALLS };

extern HIDDEN uint64_t os_calls[OS_CALLS];

/* Bytes in a page; 4 to 64 KiB. */
size_t os_page_size(void);

/* Address space that nothing may touch yet, at `hint` exactly, or anywhere if hint is NULL. NULL if there
 * is none (or something else lives at `hint`). */
void *os_reserve(void *hint, size_t bytes);

/* Makes reserved pages usable; they read as zero if they were never used. False: out of memory. */
bool os_commit(void *at, size_t bytes);

/* Gives the content of usable pages back; they stay usable and read as zero. False: all of them stay usable, and some, before a page
 * that the kernel does not give back (locked memory), may read as zero. */
bool os_purge(void *at, size_t bytes);

/* Bytes of usable pages that are in memory, as the kernel counts them. */
size_t os_resident(const void *at, size_t bytes);

/* Gives the content of usable pages back, and nothing may touch them until they are committed again, when they read as zero.
 * False: they are usable, and read as zero. */
bool os_close(void *at, size_t bytes);

/* Nothing may touch these pages until they are committed again; their content stays. False: they are as before. */
bool os_forbid(void *at, size_t bytes);

/* Makes usable pages read as zero. Those in memory stay there; the others stay out of it. */
void os_clear(void *at, size_t bytes);

/* Calls `act` for usable pages that are in memory, as long as it returns true; whether it did to the end. The others stay out of it and
 * read as zero, even if they were in swap. */
bool os_each_present(void *at, size_t bytes, bool (*act)(void *pages, size_t bytes));

/* As os_purge for each run of ones in `pieces`, where bit i is the piece of 1 << shift bytes at base + (i << shift). Returns
 * those that were given back. */
bits128 os_purge_pieces(char *base, bits128 pieces, unsigned shift);

/* Puts fresh usable pages, which read as zero, in place of whatever of ours is mapped there. False: the
 * old mapping is still there, or nothing is. */
bool os_renew(void *at, size_t bytes);

/* As os_renew where nothing is mapped. False: something else took the place meanwhile. */
bool os_refill_hole(void *at, size_t bytes);

/* May os_move be tried? It wants one mapping, and the user may have split a block's (madvise, mlock, mprotect on
 * a part of it). */
bool os_can_move(void *from, size_t bytes);

/* Moves the pages of [from, from + old_bytes) to `to`, replacing the usable pages there, and extends them
 * to new_bytes. Nothing is mapped at `from` afterwards. False: `from` is as before, but nothing may be mapped
 * at `to` any more (Linux unmaps the destination before it looks further, unless there are too many mappings). */
bool os_move(void *from, size_t old_bytes, void *to, size_t new_bytes);

/* Is there readable memory at `at` (a multiple of 4) that holds `value`? Whatever is there, this does not fault.
 * A full memory barrier comes before the look. */
bool os_holds(const void *at, uint32_t value);

/* Is there readable memory at `at` (a multiple of 4), whatever it holds? */
bool os_is_readable(uintptr_t at);

/* Sets a bit (below 32) in the word at `at` if the low half of the word is `low`: first the look, then, in one step,
 * the bit. False: the word is another, or is no longer there. Whatever is there, this does not fault. A full memory
 * barrier comes first. */
bool os_set_bit(uintptr_t *at, uint32_t low, unsigned bit);

/* Lets the kernel back these pages with huge ones, a first touch taking 2 MiB; os_renew and the second function take
 * that back. */
void os_allow_huge_pages(void *at, size_t bytes);

void os_forbid_huge_pages(void *at, size_t bytes);

/* Bytes of a huge page. */
size_t os_huge_page_size(void);

/* What asking for one came to. */
enum os_collapse { OS_COLLAPSED, OS_NOT_NOW, OS_NEVER };

/* Puts usable pages, as many as a huge page and aligned as one, into one; those that are not in memory come into it. That takes
 * about as long as to copy it. Whatever it comes to, the kernel may use huge pages here from now on. */
enum os_collapse os_collapse(void *at);

/* Returns a whole reservation to the system. */
void os_release(void *at, size_t bytes);

/* Makes every other running thread of the process pass a full memory barrier before it returns. False: the
 * kernel cannot. */
bool os_barrier(void);

/* What the first barrier of a process waits for, ten milliseconds and more if it has threads: better before than under a lock. */
void os_prepare_barrier(void);

/* A random number, for the place of the heap. */
uint64_t os_random(void);

/* Is the process set-user-ID or otherwise not to trust its environment? */
bool os_is_secure(void);

/* Are so many bytes more than memory and swap space of the machine, and would the kernel not give a process so many? What is
 * reserved here it does not count; but vm.overcommit_memory is the administrator's word on what may be promised. */
bool os_is_beyond(size_t bytes);

/* Bytes of address space that the process may have mapped in all (RLIMIT_AS). */
size_t os_address_limit(void);

/* The lowest memory limit of the process's control group and of those above it, bytes; SIZE_MAX if there is none, or it
 * cannot be read; 0 if files may be opened again later, which cannot be now. Reads files, for as long as that takes; one thread at a time. */
size_t os_memory_limit(void);

/* The processors that the process's threads may use at once, as far as its affinity and the quotas of its control group and
 * of those above it say; SIZE_MAX if nothing does. Reads files, for as long as that takes; one thread at a time. */
size_t os_processors(void);

/* Where a signal handler's thread was interrupted; `context` is the handler's third argument. */
uintptr_t os_interrupted_at(const void *context);

/* What the process has used, as the kernel counts it. */
struct os_usage {
    uint64_t work_ns; /* on processors, all threads */
    uint64_t faults;  /* of pages that needed no reading: most were touched first */
    uint64_t major_faults; /* of those that did */
};

struct os_usage os_usage(void);

/* The kernel's numbers of a thread and of its process. */
struct os_thread {
    int number;
    int process;
};

/* Of the calling thread. */
struct os_thread os_thread(void);
int os_thread_id(void);

/* Has that thread of this process ended? False if the kernel does not say, and if it was another process's: what runs after a
 * clone without fork handlers still goes by the numbers of the process that was cloned. */
bool os_thread_is_gone(struct os_thread thread);

/* The lock of libc's list of streams, if libc's fork takes it after the fork handlers: a handler that takes locks for which holders
 * of streams may wait takes it before. A thread may take it twice. In the child it is free afterwards. */
void os_streams_lock(void);
void os_streams_unlock(void);
void os_streams_after_fork(void);

/*
 * The service thread: a thread of the process that libc does not know (docs/decisions/0016). It may be started under
 * locks of libc's, and it does not keep a process alive whose other threads have ended.
 */

/* Starts it: it runs body() and ends when that returns. False: there is one that has not wholly ended, or the kernel
 * refuses, or it could not have a copy of `local`; nothing has changed then.
 *
 * All signals but SIGSYS are blocked in it. `name`, up to 15 characters that stay where they are, is what ps and top show. Its
 * thread-local variables are zero, whatever their initializers say, so body sets those that it uses; `local` is the
 * caller's copy of one of them, a word. Of libc, body may call what only asks the kernel or only reads the thread
 * pointer: syscall, errno, clock_gettime, memset; nothing that takes a lock of libc's or knows its
 * threads. Whoever has started it may end before it does. */
bool os_service_start(void (*body)(void), const char *name, const void *local);

/* Is there one that has not wholly ended? */
bool os_service_runs(void);

/* In a fork's child, where there is none: one may be started again. */
void os_service_forget(void);

/* Sleeps for `ms`; less if a signal comes. */
void os_sleep(uint32_t ms);

#endif
