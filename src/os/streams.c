/*
 * glibc keeps a list of its open streams, with a lock. Its fork takes that lock after all fork handlers have run; of its own
 * malloc's locks it knows that they come later. fflush(NULL) holds it while it waits for a stream, whose holder may wait for memory.
 */
#include "os/os.h"

/* Other libcs have no such names. */
extern void list_lock(void) __asm__("_IO_list_lock") __attribute__((weak));
extern void list_unlock(void) __asm__("_IO_list_unlock") __attribute__((weak));
extern void list_resetlock(void) __asm__("_IO_list_resetlock") __attribute__((weak));

void os_streams_lock(void)
{
    if (list_lock != NULL)
        list_lock();
}

void os_streams_unlock(void)
{
    if (list_unlock != NULL)
        list_unlock();
}

void os_streams_after_fork(void)
{
    if (list_resetlock != NULL)
        list_resetlock();
}
