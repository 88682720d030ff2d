/*
 * The OS layer under control: any call of os/os.h that may fail can be told to, and time can be set. The
 * programs are linked with --wrap for these names (CMakeLists.txt), so everything above the OS layer comes
 * here first; what is not refused goes on to the real layer.
 *
 * HAK_TEST_PAGE_SIZE in the environment makes pages larger than the system's: os_page_size says so, reservations
 * start on one, and a call whose address or size is not a multiple of it ends the program.
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
    FAKE_ALL = (1 << 7) - 1,
};

#define FAKE_EVERY SIZE_MAX

/* Of the calls of these kinds from now on, the first-th (from 1) and those after it are refused, `count` in
 * all. Replaces what was asked before. */
void fake_os_refuse(unsigned calls, size_t first, size_t count);

/* Nothing is refused any more. */
void fake_os_obey(void);

/* Calls that were refused since the last fake_os_refuse. */
size_t fake_os_refused(void);

/* Calls of these kinds that were made, refused ones included, since the start. */
size_t fake_os_made(unsigned calls);

/* What is called after each barrier that was not refused, before its caller goes on; NULL: nothing. */
void fake_os_after_barrier(void (*hook)(void));

/* What os_is_secure says. */
void fake_os_set_secure(bool secure);

/* What clock_now_ms says from now on; 0: the real time. */
void fake_clock_set(uint64_t ms);

#endif
