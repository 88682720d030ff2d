/*
 * The OS layer under control: any call of os/os.h that may fail can be told to, and time can be set. The
 * programs are linked with --wrap for these names (CMakeLists.txt), so everything above the OS layer comes
 * here first; what is not refused goes on to the real layer.
 *
 * HAK_TEST_PAGE_SIZE in the environment makes pages larger than the system's: os_page_size says so, reservations
 * start on one, and a call whose address or size is not a multiple of it ends the program.
 *
 * Nothing is ever put into a huge page. The kernel promises any number of bytes.
 *
 * The service thread is one of libc's here, so that what it runs may use CHECK and all of libc.
 *
 * Any thread may call through it; one thread at a time changes what is refused.
 */
#ifndef HAK_TEST_FAKE_OS_H
#define HAK_TEST_FAKE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One bit a kind of call. */
enum fake_calls {
    FAKE_RESERVE = 1 << 0,
    FAKE_COMMIT = 1 << 1,
    FAKE_PURGE = 1 << 2,
    FAKE_RENEW = 1 << 3,
    FAKE_REFILL_HOLE = 1 << 4,
    FAKE_MOVE = 1 << 5,
    FAKE_BARRIER = 1 << 6,
    FAKE_CAN_MOVE = 1 << 7,
    FAKE_IS_GONE = 1 << 8, /* os_thread_is_gone: the kernel does not say */
    FAKE_RANDOM = 1 << 9,  /* always the same number */
    FAKE_LIMIT = 1 << 10,  /* os_address_limit: unknown */
    FAKE_HOLDS = 1 << 11,
    FAKE_SET_BIT = 1 << 12, /* os_set_bit: the word has gone */
    FAKE_SERVICE = 1 << 13, /* os_service_start */
    FAKE_SLEEP = 1 << 14,   /* os_sleep: returns at once */
    FAKE_CLOSE = 1 << 15,
    FAKE_COLLAPSE = 1 << 16,       /* not now */
    FAKE_NEVER_COLLAPSE = 1 << 17, /* the kernel has no huge pages */
    FAKE_BEYOND = 1 << 18,         /* os_is_beyond: it is */
    FAKE_USAGE = 1 << 19,          /* os_usage: nothing is known */
    FAKE_ALL = (1 << 20) - 1,
};

#define FAKE_EVERY SIZE_MAX

/* Of every refused move one in two leaves a hole at its destination, as Linux may.
 *
 * Of the calls of these kinds from now on, the first-th (from 1) and those after it are refused, `count` in
 * all. Replaces what was asked before. */
void fake_os_refuse(unsigned calls, size_t first, size_t count);

/* As fake_os_refuse, but refuses one call in `one_in` at random, as `seed` has it. */
void fake_os_refuse_some(unsigned calls, size_t one_in, uint64_t seed);

/* A kernel that counts what is usable as used, as with vm.overcommit_memory=2: no more than `bytes` may be
 * usable, those in use now not counted. SIZE_MAX: no bound. */
void fake_os_set_commit_most(size_t bytes);

/* Nothing is refused any more; the bound on usable memory stays. */
void fake_os_obey(void);

/* Calls that were refused since the last fake_os_refuse. */
size_t fake_os_refused(void);

/* Calls of these kinds that were made, refused ones included, since the start. */
size_t fake_os_made(unsigned calls);

/* What is called after each barrier that was not refused, before its caller goes on; NULL: nothing. */
void fake_os_after_barrier(void (*hook)(void));

/* The same, before each purge, before each hole is filled, and before each huge page is made, that is not refused. */
void fake_os_before_purge(void (*hook)(void));
void fake_os_before_collapse(void (*hook)(void));
void fake_os_before_refill(void (*hook)(void));

/* The same, before each os_sleep, refused ones included. */
void fake_os_before_sleep(void (*hook)(uint32_t ms));

/* What os_is_secure says. */
void fake_os_set_secure(bool secure);

/* What os_memory_limit says, SIZE_MAX until then, and how often it was asked. */
void fake_os_set_memory_limit(size_t bytes);
size_t fake_os_memory_limit_reads(void);

/* The same of os_processors. */
void fake_os_set_processors(size_t count);
size_t fake_os_processors_reads(void);

/* What happens while it is read; NULL: nothing. */
void fake_os_during_processors(void (*what)(void));

/* What clock_now_ms, and in its unit clock_now_ns, say from now on; 0: the real time. */
void fake_clock_set(uint64_t ms);

#endif
