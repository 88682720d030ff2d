/* A system call that the kernel refuses this process, as in a sandbox. */
#ifndef HAK_TEST_REFUSED_CALL_H
#define HAK_TEST_REFUSED_CALL_H

#include <stdint.h>
#include <sys/prctl.h>

#include "process.h"
#include "unit.h"

/* False: they cannot, and it has been said that the test is skipped. */
static inline bool calls_can_be_refused(const char *test)
{
    if (process_is_emulated())
        check_skipped(test, "the emulator takes no filter");
    return !process_is_emulated();
}

/* From now on it ends with this error's number, or, with none, as if it had been done, for ever: for tests, each of which is a process,
 * and their children. */
static inline void refuse_call(uint32_t number, uint32_t error)
{
    /* Of the kernel's interface, whose headers are not everywhere (linux/filter.h, linux/seccomp.h). */
    enum { LOAD_NUMBER = 0x20, SKIP_IF = 0x15, ANSWER = 0x06, ANSWER_ERROR = 0x50000, ANSWER_ALLOW = 0x7fff0000, BY_FILTER = 2 };
    struct filter_step {
        uint16_t code;
        uint8_t if_so;
        uint8_t if_not;
        uint32_t value;
    };
    const struct filter_step steps[] = {
        {LOAD_NUMBER, 0, 0, 0}, {SKIP_IF, 0, 1, number}, {ANSWER, 0, 0, ANSWER_ERROR | error}, {ANSWER, 0, 0, ANSWER_ALLOW}};
    const struct {
        unsigned short count;
        const struct filter_step *steps;
    } filter = {sizeof steps / sizeof steps[0], steps};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, BY_FILTER, &filter) == 0);
}

#endif
